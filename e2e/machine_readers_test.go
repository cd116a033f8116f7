package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A readFile is a real program's file, and edits of it: after each one the program reads
// exactly these lines more and these less.
type readFile struct {
	path  string
	text  string
	read  string // a shell command that prints what the program reads of "$1", a value a line
	edits []readEdit
}

type readEdit struct {
	glyph      string // the block's kind and its arguments but for the path
	gone, come []string
}

// readBack is Python's own reading of a file, every value on a line of its own.
const readBack = `python3 -c '
import sys
def walk(at, v):
    if isinstance(v, dict):
        for k in v: walk(at + [str(k)], v[k])
        if not v: print(".".join(at) + " is empty")
    elif isinstance(v, list):
        for i, x in enumerate(v): walk(at + [str(i)], x)
        if not v: print(".".join(at) + " is empty")
    else: print(".".join(at), "=", repr(v))
%s
walk([], load(open(sys.argv[1], "rb")))' "$1"`

var readers = []readFile{
	{
		path: "/etc/gitconfig",
		text: "# theirs\n[user]\n\tname = Ann \"the #1\"   ; hers\n[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n" +
			"[alias]\n  lg = log --graph \\\n\t--oneline\n[core]\n\tbare\n[remote \"other\"]\n\turl=x",
		read: `git config --file "$1" --list`,
		edits: []readEdit{
			{
				"entry|key = [\"remote \\\"origin\\\"\", \"url\"]\nvalue = \"git@example.org:a#b; c\"",
				[]string{"remote.origin.url=https://example.org/a.git"},
				[]string{"remote.origin.url=git@example.org:a#b; c"},
			},
			{"entry|key = [\"remote \\\"origin\\\"\", \"fetch\"]\nmember = \"+refs/tags/*:refs/tags/*\"", nil, []string{"remote.origin.fetch=+refs/tags/*:refs/tags/*"}},
			{"entry|key = [\"url \\\"git@h:\\\"\", \"insteadOf\"]\nvalue = \"https://h/\"", nil, []string{"url.git@h:.insteadof=https://h/"}},
			{"entry|key = [\"alias\", \"lg\"]\nabsent = true", []string{"alias.lg=log --graph  --oneline"}, nil},
		},
	},
	{
		path: "/etc/docker/daemon.json",
		text: "{\n    \"storage-driver\" : \"overlay2\",\"dns\":[ \"8.8.8.8\" ],\n    \"big\": 9007199254740993, \"ratio\": 1e3,\n    \"log-opts\": {}\n}",
		read: fmt.Sprintf(readBack, "from json import load"),
		edits: []readEdit{
			{"entry|key = \"log-opts.max-size\"\nvalue = \"10m\"", []string{"log-opts is empty"}, []string{"log-opts.max-size = '10m'"}},
			{"entry|key = \"dns\"\nmember = \"1.1.1.1\"", nil, []string{"dns.1 = '1.1.1.1'"}},
			{"entry|key = \"default-ulimits.nofile\"\nvalue = { Name = \"nofile\", Soft = 64000 }", nil, []string{"default-ulimits.nofile.Name = 'nofile'", "default-ulimits.nofile.Soft = 64000"}},
			{"entry|key = \"ratio\"\nabsent = true", []string{"ratio = 1000.0"}, nil},
		},
	},
	{
		path: "/srv/compose.yaml",
		text: "# who: ops\nx-log: &log\n  driver: journald   # not json-file\nservices:\n  web:\n    image: \"nginx:1.25\"\n    ports:\n    - \"80:80\"\n    logging: *log\n" +
			"    environment: {TZ: UTC, MODE: '2'}\n  db:\n    <<: *log\n    image: postgres:16\n    command: |\n      postgres\n        -c a=b\nvolumes:\n  data:\n",
		read: fmt.Sprintf(readBack, "from yaml import safe_load as load"),
		edits: []readEdit{
			{"entry|key = \"services.web.image\"\nvalue = \"nginx:1.27\"", []string{"services.web.image = 'nginx:1.25'"}, []string{"services.web.image = 'nginx:1.27'"}},
			{"entry|key = \"services.web.ports\"\nmember = \"443:443\"", nil, []string{"services.web.ports.1 = '443:443'"}},
			{"entry|key = \"services.web.environment.DEBUG\"\nvalue = \"no\"", nil, []string{"services.web.environment.DEBUG = 'no'"}},
			{"entry|key = \"services.db.mounts\"\nvalue = [\"data:/var/lib\"]", nil, []string{"services.db.mounts.0 = 'data:/var/lib'"}},
		},
	},
	{
		path: "/etc/netplan/50-net.yaml",
		text: "network:\n    version: 2\n    ethernets:\n        eth0:\n            dhcp4: true # for now\n            nameservers:\n                addresses: [ 9.9.9.9 ]\n",
		read: fmt.Sprintf(readBack, "from yaml import safe_load as load"),
		edits: []readEdit{
			{"entry|key = \"network.ethernets.eth0.dhcp4\"\nvalue = false", []string{"network.ethernets.eth0.dhcp4 = True"}, []string{"network.ethernets.eth0.dhcp4 = False"}},
			{"entry|key = \"network.ethernets.eth0.nameservers.addresses\"\nmember = \"1.1.1.1\"\nbefore = \"9.9.9.9\"", []string{"network.ethernets.eth0.nameservers.addresses.0 = '9.9.9.9'"}, []string{"network.ethernets.eth0.nameservers.addresses.0 = '1.1.1.1'", "network.ethernets.eth0.nameservers.addresses.1 = '9.9.9.9'"}},
		},
	},
	{
		path: "/etc/containerd/config.toml",
		text: "version = 2\n# how it is run\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = 'pause:3.9' # pinned\n  [plugins.\"io.containerd.grpc.v1.cri\".containerd]\n    snapshotter = \"overlayfs\"\n" +
			"[debug]\nlevel = \"\"\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\ncaps = [\n  \"pull\", # only\n]\n",
		read: fmt.Sprintf(readBack, "from tomllib import load"),
		edits: []readEdit{
			{
				"entry|key = [\"plugins\", \"io.containerd.grpc.v1.cri\", \"sandbox_image\"]\nvalue = \"pause:3.10\"",
				[]string{"plugins.io.containerd.grpc.v1.cri.sandbox_image = 'pause:3.9'"},
				[]string{"plugins.io.containerd.grpc.v1.cri.sandbox_image = 'pause:3.10'"},
			},
			{"entry|key = [\"plugins\", \"io.containerd.grpc.v1.cri\", \"containerd\", \"runc\", \"SystemdCgroup\"]\nvalue = true", nil, []string{"plugins.io.containerd.grpc.v1.cri.containerd.runc.SystemdCgroup = True"}},
			{"entry|key = [\"hosts\", 1, \"caps\"]\nmember = \"resolve\"", nil, []string{"hosts.1.caps.1 = 'resolve'"}},
			{"entry|key = \"debug\"\nabsent = true", []string{"debug.level = ''"}, nil},
		},
	},
	{
		path: "/etc/php.ini",
		text: "; About this file\n[PHP]\nmemory_limit = 128M\n;max_execution_time = 30\nextension=curl\ndisable_functions =\nerror_log = \"/var/log/php;x.log\" ; quoted\n[Date]\n;date.timezone =\n[Session]\nsession.name=SID",
		read: `php8.2 -n -r 'foreach (parse_ini_file($argv[1], true, INI_SCANNER_RAW) as $s => $all) foreach ($all as $k => $v) echo "$s $k=$v\n";' "$1"`,
		edits: []readEdit{
			{"entry|key = [\"PHP\", \"memory_limit\"]\nvalue = \"256M\"\nvalidate = [\"php8.2\", \"-c\", \"%s\", \"-r\", \"exit(ini_get('memory_limit') === '256M' ? 0 : 1);\"]", []string{"PHP memory_limit=128M"}, []string{"PHP memory_limit=256M"}},
			{"entry|key = [\"PHP\", \"max_execution_time\"]\nvalue = 60", nil, []string{"PHP max_execution_time=60"}},
			{"entry|key = [\"Date\", \"date.timezone\"]\nvalue = \"Europe/Berlin\"", nil, []string{"Date date.timezone=Europe/Berlin"}},
			{"entry|key = [\"Session\", \"session.name\"]\nabsent = true", []string{"Session session.name=SID"}, nil},
		},
	},
	{
		path: "/etc/default/app",
		text: "# sourced by the unit\nexport PATH=/usr/bin\nOPTS=\"-a  -b\" # two\nEMPTY=\nA='$x'\n",
		read: `env -i /bin/sh -ec '. "$1"; set' sh "$1" | grep -Ev '^(IFS|OPTIND|PPID|PS[124]|PWD|_)='`,
		edits: []readEdit{
			{"entry|key = \"OPTS\"\nvalue = \"-a $HOME `id` it's \\\"x\\\"\"", []string{"OPTS='-a  -b'"}, []string{`OPTS='-a $HOME ` + "`id`" + ` it'"'"'s "x"'`}},
			{"entry|key = \"NEW\"\nvalue = \"1 2\"", nil, []string{"NEW='1 2'"}},
			{"line|line = \"EMPTY=not\"\nmatch = \"^EMPTY=\"", []string{"EMPTY=''"}, []string{"EMPTY='not'"}},
		},
	},
	{
		path: "/etc/sysctl.d/60-app.conf",
		text: "# kernel\nnet.ipv4.ip_forward=0\n; old\nnet.ipv4.ip_default_ttl = 64",
		read: `sysctl --dry-run -p "$1"`,
		edits: []readEdit{
			{"entry|format = \"ini\"\nkey = [\"\", \"net.ipv4.ip_forward\"]\nvalue = 1", []string{"net.ipv4.ip_forward = 0"}, []string{"net.ipv4.ip_forward = 1"}},
			{"line|line = \"net.core.somaxconn = 4096\"\nafter = \"^net.ipv4.ip_f\"", nil, []string{"net.core.somaxconn = 4096"}},
		},
	},
	{
		path: "/etc/sudoers.d/app",
		text: "# theirs\nDefaults env_reset\nann ALL=(ALL) ALL",
		read: `cvtsudoers -f sudoers "$1"`,
		edits: []readEdit{
			{
				"line|line = \"bob ALL=(root) NOPASSWD: /usr/bin/systemctl reload nginx\"\nvalidate = [\"visudo\", \"-cqf\", \"%s\"]", nil,
				[]string{"bob ALL = (root) NOPASSWD: /usr/bin/systemctl reload nginx"},
			},
			{"region|name = \"ops\"\ncontent = \"%ops ALL=(ALL) ALL\\n\"\nbefore = \"^ann\"\nvalidate = [\"visudo\", \"-cqf\", \"%s\"]", nil, []string{"%ops ALL = (ALL) ALL"}},
		},
	},
	{
		path: "/etc/unbound/app.conf",
		text: "server:\n\tusername: \"\"\n\tchroot: \"\"\n    port: 53\n    # interface: 0.0.0.0\n    access-control: 10.0.0.0/8 allow\nremote-control:\n    control-enable: no\n",
		read: `for o in port interface access-control control-enable verbosity; do unbound-checkconf -o $o "$1" | sed "s/^/$o /"; done`,
		edits: []readEdit{
			{"line|line = \"    port: 5353\"\nmatch = \"^ *port:\"\nvalidate = [\"unbound-checkconf\", \"%s\"]", []string{"port 53"}, []string{"port 5353"}},
			{
				"region|name = \"lan\"\ncontent = \"interface: 127.0.0.2\\naccess-control: 192.168.0.0/16 allow\\n\"\nindent = 4\nafter = \"^ *access-control:\"\nvalidate = [\"unbound-checkconf\", \"%s\"]", nil,
				[]string{"access-control 192.168.0.0/16 allow", "interface 127.0.0.2"},
			},
		},
	},
	{
		path: "/etc/app.fstab",
		text: "# <what> <where>\nUUID=0a / ext4 errors=remount-ro 0 1\ntmpfs\t/tmp tmpfs size=1g 0 0",
		read: `findmnt --tab-file "$1" --raw --noheadings --output SOURCE,TARGET,FSTYPE,OPTIONS`,
		edits: []readEdit{
			{"line|line = \"nas:/export /srv/my\\\\040data nfs ro,_netdev 0 0\"", nil, []string{`nas:/export /srv/my\x20data nfs ro,_netdev`}},
			{"line|line = \"tmpfs /tmp tmpfs size=2g 0 0\"\nmatch = \"\\\\s/tmp\\\\s\"", []string{"tmpfs /tmp tmpfs size=1g"}, []string{"tmpfs /tmp tmpfs size=2g"}},
		},
	},
	{
		path: "/etc/systemd/system/theirs.service.d/10-app.conf",
		text: "# why: ticket\n[Service]\nEnvironment=A=1 \"B=2 3\"\nExecStart=\nExecStart=/bin/sleep 1000",
		read: `systemctl daemon-reload; systemd-analyze verify theirs.service 2>&1; systemctl show -p Environment,ExecStart,TimeoutStopUSec,MemoryMax theirs.service | sed 's/ ; .*//'`,
		edits: []readEdit{
			{"entry|key = [\"Service\", \"Environment\"]\nmember = \"C=%%h\"", []string{`Environment=A=1 "B=2 3"`}, []string{`Environment=A=1 "B=2 3" C=%h`}},
			{"entry|key = [\"Service\", \"TimeoutStopSec\"]\nvalue = 7", []string{"TimeoutStopUSec=1min 30s"}, []string{"TimeoutStopUSec=7s"}},
			{"entry|key = [\"Service\", \"MemoryMax\"]\nvalue = \"64M\"", []string{"MemoryMax=infinity"}, []string{"MemoryMax=67108864"}},
		},
	},
}

// programs are the packages of the archive that have the readers, with what those need to
// run. They are only unpacked: nothing is started, and nothing is configured.
const programs = "git python3-minimal python3.11-minimal libpython3.11-minimal libpython3.11-stdlib python3.11 python3-yaml libyaml-0-2 sudo " +
	"unbound libevent-2.1-7 libnghttp2-14 libprotobuf-c1 libpython3.11 php8.2-cli libargon2-1 libsodium23 libxml2 libicu72 libedit2"

// TestEveryReaderReadsWhatWasDeclared edits the files of real programs key by key. After
// each edit the program reads what was declared, and everything else as before; after
// destroy every file is what it was.
func TestEveryReaderReadsWhatWasDeclared(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("cd /srv/repo; for p in " + programs + "; do dpkg-deb --fsys-tarfile ${p}_[0-9]*.deb | tar -x -C / --keep-directory-symlink; done; ldconfig")
	m.write("/etc/systemd/system/theirs.service", "[Service]\nExecStart=/bin/true\n")
	most, then := 0, time.Unix(1_600_000_000, 123456789)
	for i, r := range readers {
		m.write(r.path, r.text)
		inside := m.inside(r.path)
		m.check(os.Chown(inside, 1000+i, 100))
		m.check(unix.Chmod(inside, 0o640|uint32(i%2)*4))
		m.check(unix.Setxattr(inside, "user.whose", []byte("theirs"), 0))
		m.check(os.Chtimes(inside, then, then))
		most = max(most, len(r.edits))
	}
	prints := func() (lines []string) {
		for _, r := range readers {
			line, err := pathLine(m.inside(r.path), r.path, map[uint64]string{}, hashOf)
			m.check(err)
			lines = append(lines, line)
		}
		return lines
	}
	found := prints()
	read := make([][]string, len(readers))
	for i, r := range readers {
		read[i] = m.reads(r)
	}
	var scroll strings.Builder
	for n := range most {
		for i, r := range readers {
			if n < len(r.edits) {
				kind, args, _ := strings.Cut(r.edits[n].glyph, "|")
				fmt.Fprintf(&scroll, "scroll \"s%d-%d\" {\n%s \"e\" {\npath = %q\n%s\n}\n}\n", i, n, kind, r.path, args)
			}
		}
		m.declare(scroll.String())
		m.apply()
		says(t, m.plan(), "No changes.")
		for i, r := range readers {
			if n < len(r.edits) {
				was := read[i]
				read[i] = m.reads(r)
				wantLines(t, fmt.Sprintf("%s, edit %d", r.path, n), was, read[i], r.edits[n])
				if t.Failed() {
					t.Logf("%s is now\n%s", r.path, m.read(r.path))
				}
			}
		}
	}
	m.destroy()
	if diff := difference(found, prints()); diff != "" {
		t.Errorf("after destroy:\n%s", diff)
	}

	// What the readers refuse does not come near their files.
	for _, bad := range []string{
		"line \"x\" {\n  path = \"/etc/sudoers.d/app\"\n  line = \"no such rule\"\n  validate = [\"visudo\", \"-cf\", \"%s\"]\n}\n",
		"line \"x\" {\n  path = \"/etc/unbound/app.conf\"\n  line = \"no-such-option: 1\"\n  validate = [\"unbound-checkconf\", \"%s\"]\n}\n",
		"line \"x\" {\n  path = \"/etc/gitconfig\"\n  line = \"[broken\"\n  validate = [\"git\", \"config\", \"--list\", \"--file\", \"%s\"]\n}\n",
	} {
		m.declare(bad)
		says(t, m.golem(3, "apply", "--auto-approve", site).stdout, "validate")
		if diff := difference(found, prints()); diff != "" {
			t.Errorf("after what was refused:\n%s", diff)
		}
	}
}

// reads is what a program reads of its file, a line each, blank ones left out.
func (m *machine) reads(r readFile) []string {
	m.t.Helper()
	return strings.FieldsFunc(m.must("sh", "-ec", r.read, "sh", r.path), func(c rune) bool { return c == '\n' })
}

// wantLines wants two readings to differ by an edit and no more, in any order.
func wantLines(t *testing.T, what string, was, is []string, e readEdit) {
	t.Helper()
	want := slices.Clone(was)
	for _, line := range e.gone {
		i := slices.Index(want, line)
		if i < 0 {
			t.Errorf("%s: %q was not read before:\n%s", what, line, strings.Join(was, "\n"))
			return
		}
		want = slices.Delete(want, i, i+1)
	}
	want = append(want, e.come...)
	have := slices.Clone(is)
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("%s: it reads\n%s\nand was to read\n%s", what, strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}
