package reconcilers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golem/scrolls"
)

// sockets are what the host listens on: addresses by protocol and port.
type sockets map[string][]netip.Addr

// listening reads what the host listens on (proc(5)); nothing where the kernel does not
// tell.
func (h *Host) listening() sockets {
	all := sockets{}
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		data, err := os.ReadFile(filepath.Join(h.Root, "proc/net", file))
		if err != nil {
			continue // no IPv6, or no such file system: the engine will tell
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 4 || file[:3] == "tcp" && f[3] != "0A" || file[:3] == "udp" && f[3] != "07" {
				continue
			}
			if ip, n, ok := procAddr(f[1]); ok {
				key := file[:3] + strconv.Itoa(n)
				all[key] = append(all[key], ip)
			}
		}
	}
	return all
}

// procAddr reads an address as /proc/net has it: words of four bytes, each turned round.
func procAddr(text string) (netip.Addr, int, bool) {
	host, hexPort, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	n, perr := strconv.ParseUint(hexPort, 16, 16)
	if err != nil || perr != nil || len(bytes)%4 != 0 {
		return netip.Addr{}, 0, false
	}
	for i := 0; i < len(bytes); i += 4 {
		bytes[i], bytes[i+1], bytes[i+2], bytes[i+3] = bytes[i+3], bytes[i+2], bytes[i+1], bytes[i]
	}
	ip, ok := netip.AddrFromSlice(bytes)
	return ip.Unmap(), int(n), ok
}

// has says whether somebody listens where a port would.
func (s sockets) has(p port) bool {
	want, err := netip.ParseAddr(p.ip)
	for _, ip := range s[p.via+strconv.Itoa(p.host)] {
		if err != nil || want.IsUnspecified() || ip.IsUnspecified() || ip == want {
			return true
		}
	}
	return false
}

// overlaps says whether two ports of the host cannot be had at once.
func (p port) overlaps(o port) bool {
	if p.host != o.host || p.via != o.via {
		return false
	}
	a, aerr := netip.ParseAddr(p.ip)
	b, berr := netip.ParseAddr(o.ip)
	return aerr != nil || berr != nil || a.IsUnspecified() || b.IsUnspecified() || a == b
}

// holds says whether a container that runs has a port of the host.
func (p *pod) holds(want port) bool {
	return p.up() && slices.ContainsFunc(p.published(), func(text string) bool {
		has, _ := portOf(text)
		return has.overlaps(want)
	})
}

// sharedPorts finds containers of a scroll that cannot run at once.
func sharedPorts(glyphs []*scrolls.Glyph) []Mistake {
	var mistakes []Mistake
	for i, g := range glyphs {
		for _, other := range glyphs[:i] {
			p, shared := sharedPort(g, other)
			if !shared {
				continue
			}
			mistakes = append(mistakes, Mistake{Glyph: g, Other: other, Problem: scrolls.Problem{
				Attr: "ports", Summary: "Port declared twice",
				Detail: fmt.Sprintf("Port %s of the host leads into %s, too. Only one of them can have it.", p, other.Key),
			}})
		}
	}
	return mistakes
}

func sharedPort(g, other *scrolls.Glyph) (port, bool) {
	if str(g.Attrs, "state") == "stopped" || str(other.Attrs, "state") == "stopped" || secret(g) && slices.Contains(g.Secret, "ports") {
		return port{}, false
	}
	for _, p := range portsOf(g.Attrs) {
		if slices.ContainsFunc(portsOf(other.Attrs), p.overlaps) {
			return p, true
		}
	}
	return port{}, false
}

// portsFree says in a plan which port a container that is to be made will not get: one of
// golem's containers has it and keeps it until then, or something else has it and no turn
// before runs programs that may let go of it.
func (e podEngine) portsFree(name string, m motion[containerState]) error {
	w := e.w
	sockets := w.Host.listening()
	for _, p := range portsOf(m.glyph.Attrs) {
		if !sockets.has(p) {
			continue
		}
		holder, known := e.holder(p)
		if !known || w.Loose || holder != nil && (holder.goes || holder.ID == m.from.ID || holder.ID == m.to.Aside) {
			continue // it may make way before, or does
		}
		lacks := &PortError{Container: name, Port: p.String()}
		if holder != nil {
			lacks.By = holder.Name
		}
		return &AttrError{Glyph: m.glyph, Attr: "ports", Summary: "Port is in use", Err: lacks}
	}
	return nil
}

// holder is the container of either engine that has a port, and whether that is known.
func (e podEngine) holder(p port) (holder *podHolder, known bool) {
	for _, name := range engines {
		o := podEngine{e.w, name}
		pods, err := o.pods(context.Background())
		if errors.As(err, new(*NoEngineError)) {
			continue
		}
		if err != nil {
			return nil, false
		}
		if by := podWhere(pods, func(o *pod) bool { return o.holds(p) }); by != nil {
			return &podHolder{by, o.goes(by)}, true
		}
	}
	return nil, true
}

// A podHolder is a container that has something, and whether it goes by then.
type podHolder struct {
	*pod
	goes bool
}

// goes says whether the turns before stop or remove a container of golem's.
func (e podEngine) goes(p *pod) bool {
	if p.mark() == "" {
		return false
	}
	s, ok := containerKeeper.foreseen(e.w, e.resourceOf(p))
	return ok && (!s.Running || s.ID != p.ID)
}
