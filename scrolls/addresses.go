package scrolls

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

// cidr makes a function of a network and some whole numbers.
func cidr(numbers []string, fn func(netip.Prefix, []int64) (string, error)) function.Function {
	params := []function.Parameter{{Name: "network", Type: cty.String}}
	for _, name := range numbers {
		params = append(params, function.Parameter{Name: name, Type: cty.Number})
	}
	return function.New(&function.Spec{
		Params: params,
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			network, err := netip.ParsePrefix(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, `it is not a network like "10.0.0.0/8"`)
			}
			given := make([]int64, len(numbers))
			for i := range given {
				if gocty.FromCtyValue(args[i+1], &given[i]) != nil {
					return cty.NilVal, function.NewArgErrorf(i+1, "it is not a whole number")
				}
			}
			text, err := fn(network.Masked(), given)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(text), nil
		},
	})
}

// cidrHost is an address in a network by its number; a negative one counts from the end.
func cidrHost(network netip.Prefix, n []int64) (string, error) {
	bits := network.Addr().BitLen() - network.Bits()
	size := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	host := big.NewInt(n[0])
	if host.Sign() < 0 {
		host.Add(size, host)
	}
	if host.Sign() < 0 || host.Cmp(size) >= 0 {
		return "", function.NewArgErrorf(1, "the network has no address of this number")
	}
	return offset(network.Addr(), host).String(), nil
}

// cidrSubnet is one of the networks that a network of so many more bits is cut into.
func cidrSubnet(network netip.Prefix, n []int64) (string, error) {
	length := int64(network.Bits()) + n[0]
	if n[0] < 0 || length > int64(network.Addr().BitLen()) {
		return "", function.NewArgErrorf(1, "the network cannot be cut so small")
	}
	if number := big.NewInt(n[1]); n[1] < 0 || number.BitLen() > int(n[0]) {
		return "", function.NewArgErrorf(2, "there is no subnet of this number")
	}
	start := new(big.Int).Lsh(big.NewInt(n[1]), uint(network.Addr().BitLen()-int(length)))
	return netip.PrefixFrom(offset(network.Addr(), start), int(length)).String(), nil
}

// cidrNetmask is a network's mask in the dotted form that IPv4 has.
func cidrNetmask(network netip.Prefix, _ []int64) (string, error) {
	if !network.Addr().Is4() {
		return "", function.NewArgError(0, errors.New("only an IPv4 network has a netmask"))
	}
	mask := ^uint32(0) << (32 - network.Bits())
	return fmt.Sprintf("%d.%d.%d.%d", mask>>24, mask>>16&255, mask>>8&255, mask&255), nil
}

// offset is the address so many after another.
func offset(addr netip.Addr, by *big.Int) netip.Addr {
	raw := addr.AsSlice()
	sum := new(big.Int).Add(new(big.Int).SetBytes(raw), by)
	out, _ := netip.AddrFromSlice(sum.FillBytes(raw))
	return out
}

// cidrSubnetsFunc cuts networks of the given sizes out of a network, one behind the other.
var cidrSubnetsFunc = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "prefix", Type: cty.String}},
	VarParam: &function.Parameter{Name: "bits", Type: cty.Number},
	Type:     function.StaticReturnType(cty.List(cty.String)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		network, err := netip.ParsePrefix(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "it is not a network, like \"10.0.0.0/8\"")
		}
		network = network.Masked()
		next := network.Addr()
		var subnets []cty.Value
		for i, arg := range args[1:] {
			bits, exact := arg.AsBigFloat().Int64()
			length := int64(network.Bits()) + bits
			if exact != big.Exact || bits < 0 || length > int64(next.BitLen()) {
				return cty.NilVal, function.NewArgErrorf(i+1, "the network cannot be cut so small")
			}
			size := new(big.Int).Lsh(big.NewInt(1), uint(next.BitLen())-uint(length))
			start := new(big.Int).SetBytes(next.AsSlice())
			if over := new(big.Int).Mod(start, size); over.Sign() != 0 { // each begins where one of its size can
				start.Add(start, new(big.Int).Sub(size, over))
			}
			raw := start.Bytes()
			first, ok := netip.AddrFromSlice(start.FillBytes(make([]byte, max(len(raw), next.BitLen()/8))))
			if !ok || !network.Contains(first) {
				return cty.NilVal, function.NewArgErrorf(i+1, "there is no room left in the network for one of this size")
			}
			subnets = append(subnets, cty.StringVal(netip.PrefixFrom(first, int(length)).String()))
			last := new(big.Int).Add(start, size)
			if raw = last.Bytes(); len(raw) > next.BitLen()/8 {
				if i+2 < len(args) {
					return cty.NilVal, function.NewArgErrorf(i+2, "there is no room left in the network for one of this size")
				}
				break
			}
			next, _ = netip.AddrFromSlice(last.FillBytes(make([]byte, next.BitLen()/8)))
		}
		if len(subnets) == 0 {
			return cty.ListValEmpty(cty.String), nil
		}
		return cty.ListVal(subnets), nil
	},
})
