package reconcilers

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
