package reconcilers

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Facts are what a scroll may know of the host, as the language's `host` object. Under
// another root they are that root's where a file tree can tell; the kernel, the
// processors and the memory are always the machine's.
func (h *Host) Facts() map[string]any {
	release := h.osRelease()
	return map[string]any{
		"hostname": h.Name(),
		"os": map[string]any{
			"id": release["ID"], "version_id": release["VERSION_ID"], "codename": release["VERSION_CODENAME"],
		},
		"arch":         goArch(),
		"kernel":       kernel(),
		"cpus":         runtime.NumCPU(),
		"memory_bytes": memory(),
		"init":         h.initName(),
		"container":    h.container(),
	}
}

// Name is the host's name: the running system's, or what a file tree's
// /etc/hostname says.
func (h *Host) Name() string {
	if h.Live() {
		if name, err := os.Hostname(); err == nil {
			return name
		}
	}
	if name := strings.TrimSpace(h.small("/etc/hostname")); name != "" {
		return name
	}
	return "localhost"
}

// small reads a short file of the host; "" where it cannot.
func (h *Host) small(path string) string {
	w := NewWorld(h, nil)
	defer w.Close()
	at, err := w.resolve(path, true)
	if err != nil {
		return ""
	}
	f, err := h.openAt(at.real)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return ""
	}
	return string(data)
}

// osRelease reads os-release(5); every value is there, empty where it is not given.
func (h *Host) osRelease() map[string]string {
	values := map[string]string{"ID": "", "VERSION_ID": "", "VERSION_CODENAME": ""}
	text := h.small("/etc/os-release")
	if text == "" {
		text = h.small("/usr/lib/os-release")
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return values
}

// goArch spells the architecture as Debian does.
func goArch() string {
	switch runtime.GOARCH {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	}
	return runtime.GOARCH
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return string(bytes.TrimRight(u.Release[:], "\x00"))
}

func memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// initName is what runs as process 1: "systemd" or its command name; "" for a file tree.
func (h *Host) initName() string {
	if !h.Live() {
		return ""
	}
	if st, err := os.Stat("/run/systemd/system"); err == nil && st.IsDir() {
		return "systemd"
	}
	name, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// container is the kind of container golem runs in, "" for none.
func (h *Host) container() string {
	if !h.Live() {
		return ""
	}
	if kind := strings.TrimSpace(h.small("/run/systemd/container")); kind != "" {
		return kind
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		return "docker"
	}
	if _, err := os.Stat("/run/.containerenv"); err == nil {
		return "podman"
	}
	return ""
}

// MachineID is the running system's machine-id(5); "" for a file tree, or where there
// is none.
func (h *Host) MachineID() string {
	if !h.Live() {
		return ""
	}
	id := strings.TrimSpace(h.small("/etc/machine-id"))
	if len(id) != 32 {
		return ""
	}
	return id
}

// BootID tells one boot of the machine from another.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// LoginUser is who asked for root, if sudo says so.
func LoginUser() string {
	name := os.Getenv("SUDO_USER")
	if name == "" {
		return ""
	}
	if uid := os.Getenv("SUDO_UID"); uid != "" {
		if _, err := strconv.Atoi(uid); err != nil {
			return ""
		}
	}
	return name
}
