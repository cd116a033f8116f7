package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// podmanRecipe is what the tree of hosts with podman has beside that of all hosts.
// Whoever changes a step below raises its version.
var podmanRecipe = struct {
	version  string
	packages []string
	disabled []string // what asks registries, or comes and goes by itself
	files    map[string]string
}{
	version:  "1",
	packages: []string{"podman", "runc", "netavark", "aardvark-dns", "iptables"},
	disabled: []string{"podman-auto-update.service", "podman-auto-update.timer", "podman.service", "podman.socket"},
	files: map[string]string{
		// The file systems that a booted tree has take no other.
		"/etc/containers/storage.conf":    "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n",
		"/etc/containers/containers.conf": "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1000:1000\"]\nlog_driver = \"k8s-file\"\nkeyring = false\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\n",
		// In a booted tree the older control groups can only be read, until they are
		// mounted anew.
		"/usr/local/sbin/writable-cgroups": `#!/bin/sh
awk '$3 == "cgroup" { print $2 }' /proc/mounts | while read -r dir; do
	name=$(awk -v dir="$dir" '$2 == dir && $3 == "cgroup" { print $4 }' /proc/mounts | tr , '\n' | grep -vE '^(ro|rw|nosuid|nodev|noexec|relatime|xattr)$' | paste -sd,)
	case $name in *name=systemd*) continue ;; esac
	umount "$dir" && mount -t cgroup -o "rw,$name" cgroup "$dir"
done
exit 0
`,
		"/etc/systemd/system/writable-cgroups.service": "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/sbin/writable-cgroups\n[Install]\nWantedBy=sysinit.target\n",
	},
}

// podmanTree is the tree that hosts with podman are layers over: a copy of that of all
// hosts with more in it.
var podmanTree = sync.OnceValues(func() (string, error) {
	base, err := machineTree()
	if err != nil {
		return "", err
	}
	cache, err := treeCache()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("podman-%x", sha256.Sum256(fmt.Append(nil, filepath.Base(base), podmanRecipe)))[:23]
	return cachedTree(cache, key, func(tree string) error { return makePodmanTree(base, tree) })
})

func makePodmanTree(base, tree string) error {
	building := tree + ".building"
	if err := os.RemoveAll(building); err != nil { // of a run that was killed
		return err
	}
	if err := quiet(exec.Command("cp", "-a", "--reflink=auto", base, building)); err != nil {
		return err
	}
	var errs []error
	for _, mirror := range append(ownMirrors(treeRecipe.suite), usualMirror()...) {
		err := installPodman(building, mirror)
		if err == nil {
			return os.Rename(building, tree)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// usualMirror is the mirror that debootstrap knows; none where it says none.
func usualMirror() []string {
	path, err := exec.LookPath("debootstrap")
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	if m := regexp.MustCompile(`(?m)^DEF_MIRROR="([^"]+)"`).FindSubmatch(text); m != nil {
		return []string{string(m[1])}
	}
	return nil
}

// installPodman installs podman from a mirror, and leaves nothing of the mirror behind.
func installPodman(tree, mirror string) error {
	in := inTree(tree)
	back := map[string][]byte{}
	for name, text := range map[string]string{
		"etc/apt/sources.list": "deb " + mirror + " " + treeRecipe.suite + " main\n",
		"etc/resolv.conf":      "",
	} {
		path := filepath.Join(tree, name)
		was, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		back[path] = was
		if text == "" {
			own, err := os.ReadFile("/etc/resolv.conf")
			if err != nil {
				return err
			}
			text = string(own)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	steps := []func() error{
		func() error {
			return in("apt-get", "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Check-Date=false", "update")
		},
		func() error {
			return in(append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, podmanRecipe.packages...)...)
		},
		func() error { return in("apt-get", "clean") },
		func() error { return os.RemoveAll(filepath.Join(tree, "var/lib/apt/lists")) },
		func() error {
			for path, text := range back {
				if err := os.WriteFile(path, text, 0o644); err != nil {
					return err
				}
			}
			for name, text := range podmanRecipe.files {
				if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o755); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return in("apt-get", "update") },
		func() error { return in(append([]string{"systemctl", "disable"}, podmanRecipe.disabled...)...) },
		func() error { return in("systemctl", "enable", "writable-cgroups.service") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// podBinary is the program in the tests' image.
var podBinary = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(tools, "pod")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./testdata/pod")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return bin, quiet(cmd)
})

// podImage is the image that a host with podman has.
const podImage = "localhost/pod:1"

// bootPodman boots a host with podman and an image, podImage.
func bootPodman(t testing.TB) *machine {
	t.Helper()
	needMachines(t)
	tree, err := podmanTree()
	if err != nil {
		t.Fatalf("no tree with podman: %v", err)
	}
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	pod, err := podBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := bootOver(t, tree)
	data, err := os.ReadFile(pod)
	m.check(err)
	m.write("/srv/repo/pod/pod", string(data))
	m.sh("chmod 755 /srv/repo/pod/pod; tar -C /srv/repo/pod -cf - pod | podman import --quiet --change 'ENTRYPOINT [\"/pod\"]' - " + podImage)
	return m
}

// controllers makes a control group for the machine in each hierarchy of the older kind:
// podman makes groups in them all, which have to end with the machine.
func controllers(name string) ([]string, error) {
	var made []string
	mounts, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		return nil, err
	}
	for _, procs := range mounts {
		parent := filepath.Dir(procs)
		if isCgroup2(parent) || filepath.Base(parent) == "systemd" {
			continue
		}
		forgetKilled(parent, removeCgroup)
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // no process may come in before
			text, err := os.ReadFile(filepath.Join(parent, file))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), text, 0o644)
			}
			if err != nil {
				return nil, err
			}
		}
		made = append(made, dir)
	}
	return made, nil
}

// pods is podman's view of the host: containers, networks, volumes and images, one a line.
// Of what golem made, the id is left out, which is new whenever it is made.
func (m *machine) pods() []string {
	m.t.Helper()
	text := m.sh(`podman ps --all --quiet --no-trunc | xargs -r podman inspect --type container --format 'container {{.Id}} {{.Name}} {{.ImageName}} {{.Config.Cmd}} {{.State.Status}} {{range $name, $v := .NetworkSettings.Networks}}{{$name}} {{end}}{{range .Mounts}}{{.Source}}:{{.Destination}}:{{.RW}} {{end}}{{.HostConfig.PortBindings}} {{.Config.Labels}}'
podman network ls --quiet | xargs podman network inspect --format 'network {{.ID}} {{.Name}} {{.Driver}} {{.Subnets}} {{.Labels}}'
podman volume ls --format 'volume {{.Name}} {{.Driver}}'
podman images --all --no-trunc --format 'image {{.ID}} {{.Repository}}:{{.Tag}}'`)
	var lines []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(line, "golem.key") {
			line = strings.Replace(line, f[1]+" ", "", 1)
		}
		lines = append(lines, strings.TrimSpace(ofGolem.ReplaceAllString(line, "")))
	}
	slices.Sort(lines)
	return lines
}

// samePods wants podman to have what it had, out of a fingerprint of the whole machine.
func (m *machine) samePods(when string, want []string) {
	m.t.Helper()
	was := slices.DeleteFunc(slices.Clone(want), func(line string) bool {
		kind, _, _ := strings.Cut(line, " ")
		return !slices.Contains([]string{"container", "network", "volume", "image"}, kind)
	})
	if diff := difference(was, m.pods()); diff != "" {
		m.t.Errorf("%s, podman has not what it had:\n%s", when, diff)
	}
}

var ofGolem = regexp.MustCompile(`golem\.make[:=][0-9a-f]+`)
