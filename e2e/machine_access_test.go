package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// facl runs getfacl or setfacl of this host on a path of the machine; names are numbers.
func (m *machine) facl(program string, args ...string) string {
	m.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		m.t.Skip("needs the acl package: ", err)
	}
	last := len(args) - 1
	args[last] = m.inside(args[last])
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// getfacl is a path's ACL, one line of entries.
func (m *machine) getfacl(path string) string {
	m.t.Helper()
	return strings.Join(strings.Fields(m.facl("getfacl", "-cnpE", path)), ",")
}

func TestExampleSharedFolderGrantsAndTakesBack(t *testing.T) {
	t.Parallel()
	m := boot(t)
	scroll := m.example("shared-folder")
	m.sh("install -d -m 0700 /srv/data/in && echo x >/srv/data/in/file && chmod 0600 /srv/data/in/file")
	m.facl("setfacl", "-m", "u:34:w,u:1:rw", "/srv/data/in") // backup is 34
	found := m.print()
	plan := m.golem(0, "plan", scroll).stdout
	says(t, plan, "+ access:/srv/data:user:backup install grants user backup rX on it and all beneath (3 paths), and on what is made there later")
	m.same("after plan", found)
	m.golem(0, "apply", "--auto-approve", scroll)
	says(t, m.golem(0, "plan", scroll).stdout, "No changes.")
	for path, want := range map[string]string{
		"/srv/data":         "user::rwx,user:34:r-x,group::r-x,group:50:rwx,mask::rwx,other::---,default:user::rwx,default:user:34:r-x,default:group::---,default:group:50:rwx,default:mask::rwx,default:other::---",
		"/srv/data/in":      "user::rwx,user:1:rw-,user:34:r-x,group::---,mask::rwx,other::---,default:user::rwx,default:user:34:r-x,default:group::---,default:mask::r-x,default:other::---",
		"/srv/data/in/file": "user::rw-,user:34:r--,group::---,mask::r--,other::---",
	} {
		if path == "/srv/data" {
			want = strings.Replace(want, "default:group::---", "default:group::r-x", 1)
			want = strings.Replace(want, "default:other::---", "default:other::r-x", 1)
		}
		if got := m.getfacl(path); got != want {
			t.Errorf("%s is\n%s, want\n%s", path, got, want)
		}
	}
	// It has its effect, on what is made later too.
	m.must("setpriv", "--reuid=34", "--regid=34", "--clear-groups", "cat", "/srv/data/in/file")
	m.sh("umask 027; echo later >/srv/data/in/later")
	m.must("setpriv", "--reuid=34", "--regid=34", "--clear-groups", "cat", "/srv/data/in/later")

	// An entry that was taken away or masked is repaired.
	m.facl("setfacl", "-x", "u:34", "/srv/data/in/file")
	m.must("chmod", "0700", "/srv/data/in")
	says(t, m.golem(0, "plan", scroll).stdout, "! access:/srv/data:user:backup repair drifted: grants user backup rX")
	m.golem(0, "apply", "--auto-approve", scroll)
	m.must("setpriv", "--reuid=34", "--regid=34", "--clear-groups", "cat", "/srv/data/in/file")

	m.sh("rm /srv/data/in/later")
	m.golem(0, "destroy", "--auto-approve", scroll)
	if got, want := m.getfacl("/srv/data/in/file"), "user::rw-,group::---,other::---"; got != want {
		t.Errorf("after destroy the file is %s, want %s", got, want)
	}
}

func TestAccessGivesBackWhatSetfaclMade(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.sh("install -d -m 0750 /srv/data && useradd app && echo x >/srv/data/file")
	m.facl("setfacl", "-m", "u:1:rwx,g:2:r,m::r", "/srv/data")
	m.facl("setfacl", "-d", "-m", "u:1:rx", "/srv/data")
	found := m.print()
	was := m.getfacl("/srv/data")
	m.declare("access \"/srv/data\" {\n  user = \"app\"\n  perms = \"rwx\"\n  default = true\n}\naccess \"one\" {\n  path = \"/srv/data/file\"\n  user = \"daemon\"\n  perms = \"r\"\n}\n")
	says(t, m.plan(), "user daemon gains wx, which the mask kept from it")
	m.apply()
	says(t, m.plan(), "No changes.")
	if m.getfacl("/srv/data") == was {
		t.Error("nothing was granted")
	}
	m.destroy()
	if is := m.getfacl("/srv/data"); is != was {
		t.Errorf("after destroy it is\n%s, was\n%s", is, was)
	}
	m.same("after destroy", found)
	for text, why := range map[string]string{
		"path = \"/srv/none\"\n user = \"app\"":     "Nothing is at /srv/none",
		"path = \"/srv/data\"\n user = \"nobody2\"": `No user is called "nobody2" here`,
		"path = \"/proc/self\"\n user = \"app\"":    "kernel's or a device",
		// What comes later in the scroll has to move up.
		"path = \"/srv/data\"\n user = \"late\"\n}\nuser \"late\" {":                          "move user:late up",
		"path = \"/srv/data\"\n group = \"late\"\n}\nuser \"late\" {":                         "move user:late up",
		"path = \"/srv/late\"\n user = \"app\"\n}\nfile \"/srv/late\" {\n  content = \"x\"\n": "move file:/srv/late up",
	} {
		m.declare("access \"x\" {\n  perms = \"r\"\n  " + text + "\n}\n")
		says(t, m.golem(1, "plan", site).stderr, why)
	}
	m.same("after refusals", found)
}
