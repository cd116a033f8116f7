package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// bystanders are somebody's container, network and volume, with which golem has nothing to
// do, and a directory that a container of golem's reads.
func (m *machine) bystanders() {
	m.t.Helper()
	m.sh(`mkdir -p /srv/conf /etc/containers/networks
podman network create hand >/dev/null
podman volume create hand >/dev/null
podman run --detach --name hand --network hand --volume hand:/data ` + podImage + ` serve 80 by-hand >/dev/null`)
}

// answers is what a port of the machine says.
func (m *machine) answers(port int) string {
	m.t.Helper()
	return strings.TrimSpace(m.must("bash", "-c", fmt.Sprintf("cat </dev/tcp/127.0.0.1/%d", port)))
}

// webContainer is a scroll of a network and a container that serves a text.
func webContainer(text, more string) string {
	return fmt.Sprintf(`
network "lan" {
  subnet = "10.77.0.0/24"
}
container "web" {
  image    = "%s"
  command  = ["serve", "80", "%s"]
  env      = { WORD = "a b%%c $HOME" }
  ports    = ["127.0.0.1:8080:80/tcp"]
  networks = ["lan"]
  mounts   = [{ source = "/srv/conf", target = "/conf", read_only = true }, { volume = "hand", target = "/hand" }]
  restart  = "always"
%s}
`, podImage, text, more)
}

func TestContainerIsMadeChangedRepairedAndRemoved(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.bystanders()
	found := m.print()
	m.declare(webContainer("one", ""))
	says(t, m.plan(), "+ container:web install made from "+podImage+" and started: serve 80 one; what is in /srv/conf and the volume hand stays")
	m.apply()
	if said := m.answers(8080); said != "one" {
		t.Errorf("it says %q", said)
	}
	saysAll(t, m.must("podman", "inspect", "web"), `"WORD=a b%c $HOME"`, `"golem.key": "container:web"`, `"golem.cid": "`)
	says(t, m.plan(), "No changes.")

	// What somebody does to it by hand is drift.
	for _, act := range []struct {
		does, drift string
		moved       int
	}{
		{"podman stop --time 1 web", "it does not run; started", 1},
		{"podman pause web", "it is paused; it goes on", 1},
		{"podman rename web other", "it was renamed other; it gets its name back", 1},
		{"podman rm --force --time 1 web", "it is gone; made from", 1},
		// podman takes the containers on it along.
		{"podman network rm --force --time 1 lan", "network:lan repair drifted: it is gone; made: 10.77.0.0/24", 2},
	} {
		m.sh(act.does + " >/dev/null")
		says(t, m.plan(), act.drift)
		says(t, m.golem(2, "plan", "--drift", "--detailed-exitcode", site).stdout, fmt.Sprintf("Moved: 0 by the scroll, %d by the host, 0 by both;", act.moved))
		m.apply()
		if said := m.answers(8080); said != "one" {
			t.Errorf("after %s, it says %q", act.does, said)
		}
	}

	// A change makes a new one, and says what that loses; what fails loses nothing.
	id := m.must("podman", "inspect", "--format", "{{.ID}}", "web")
	ends := strings.NewReplacer(`"serve", "80", "two"`, `"end", "7"`, `"always"`, `"no"`).Replace(webContainer("two", ""))
	m.declare(ends + "policy {\n  retry {\n    max_attempts = 1\n  }\n}\n")
	saysAll(t, m.golem(3, "apply", "--auto-approve", site).stdout, "start the container web: it ended at once, with exit code 7", "the last thing it says")
	if now := m.must("podman", "inspect", "--format", "{{.ID}}", "web"); now != id || m.answers(8080) != "one" {
		t.Error("the old container was not given its place back")
	}
	m.declare(webContainer("two", ""))
	saysAll(t, m.plan(), "~ container:web replace command cannot be changed in a container", "cannot be undone: its writable layer is lost")
	m.apply()
	if said := m.answers(8080); said != "two" {
		t.Errorf("changed, it says %q", said)
	}

	// It comes up again with the host.
	m.reboot()
	deadline := time.Now().Add(10 * time.Second)
	for m.run("bash", "-c", "cat </dev/tcp/127.0.0.1/8080").stdout != "two\n" && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	says(t, m.plan(), "No changes.")

	m.must("podman", "start", "hand") // which nobody asked to come up again
	saysAll(t, m.plan("--destroy"), "- container:web remove stopped and removed: golem made it; what is in /srv/conf and the volume hand stays", "cannot be undone: its writable layer is lost")
	m.destroy()
	m.same("after destroy", found)
}

func TestReport46ContainerFoundIsAdoptedAndGivenBack(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.bystanders()
	m.sh("podman run --detach --name old --publish 127.0.0.1:8080:80 --env A=1 " + podImage + " serve 80 found >/dev/null")
	found := m.print()
	image := "  image = \"" + podImage + "\"\n"
	m.declare("container \"old\" {\n" + image + "}\n")
	saysAll(t, m.golem(1, "apply", "--auto-approve", site).stderr, "a container old that golem did not make", "adopt = true", "main.hcl line 2")
	m.samePods("refused", found)

	// As golem would declare it, it stays.
	m.declare(m.golem(0, "adopt", "--print-only", "container", "old").stdout)
	says(t, m.plan(), "adopted as it was found; it is as declared")

	// A scan finds it, and all else that somebody made.
	scan := m.golem(0, "adopt", "--scan").stdout
	saysAll(t, scan, `container "old" {`, `container "hand" {`, `network "hand" {`, "# made by hand, of ")
	if strings.Contains(scan, `file "/etc/containers/networks`) {
		t.Errorf("the scan proposes a network's file: %s", scan)
	}

	// An adopt block lets it, too, and a network is adopted beside it.
	m.sh("podman network create --subnet 10.99.0.0/24 --opt mtu=1400 yours >/dev/null")
	m.declare(m.golem(0, "adopt", "--print-only", "network", "yours").stdout + "adopt { key = \"network:yours\" }\nadopt { key = \"container:old\" }\ncontainer \"old\" {\n" + image + "}\n")
	saysAll(t, m.plan(), "network:yours", "adopted: it is there already, as declared", "adopted as it was found; it is as declared", "Adopted: 2 glyphs are there already.")
	m.sh("podman network rm yours >/dev/null")

	// What is not named is not compared.
	m.declare("container \"old\" {\n  adopt = true\n  env   = { A = \"1\" }\n}\n")
	says(t, m.plan(), "adopted as it was found; it is as declared")
	m.apply()
	says(t, m.plan(), "No changes.")
	m.samePods("adopted as it was", found)

	// A change keeps it beside.
	m.declare("container \"old\" {\n  adopt   = true\n" + image + "  command = [\"serve\", \"80\", \"mine\"]\n  ports   = [\"127.0.0.1:8080:80\"]\n}\n")
	says(t, m.plan(), "it is stopped and kept as old.found")
	m.apply()
	if said := m.answers(8080); said != "mine" {
		t.Errorf("it says %q", said)
	}
	says(t, m.plan("--destroy"), "golem's own is removed, and old.found gets its name back and is started")
	m.destroy()
	m.samePods("after destroy", found)
	if said := m.answers(8080); said != "found" {
		t.Errorf("given back, it says %q", said)
	}

	// What is in the way is told before anything is touched.
	for text, why := range map[string]string{
		image + "  ports = [\"8080:80\"]\n":                                "port 8080/tcp of the host is in use. See who listens there with: ss -lntup",
		image + "  mounts = [{ source = \"/nosuch\", target = \"/x\" }]\n": "/nosuch is to be mounted, and will not be there when the container is made",
		image + "  networks = [\"nosuch\"]\n":                              "The network nosuch will not be there when the container is made. Declare it before",
		image + "  ports = [\"8089:80\", \"127.0.0.1:8089:81\"]\n":         "Port 127.0.0.1:8089/tcp of the host leads to 80 and to 81 in the container",
		"  image  = \"" + strings.Repeat("ab", 32) + "\"\n":                "by its id none can be pulled",
		"  image  = \"oci-archive:/nosuch.tar\"\n":                         "/nosuch.tar will not be there when the container is made",
		"  image  = \"oci-archive:/etc/hostname\"\n":                       "it is not an archive of one image",
		image + "  engine = \"docker\"\n":                                  "docker: it is not installed on this host",
	} {
		m.declare("container \"p\" {\n" + text + "}\n")
		says(t, m.golem(1, "apply", "--auto-approve", site).stderr, why)
	}
	// A port is told where nothing of the run can free it, however much changes before.
	before := "file \"/etc/before\" {\n  content = \"x\"\n}\nnetwork \"n\" {}\ncontainer \"first\" {\n" + image + "}\n"
	m.declare(before + "container \"p\" {\n" + image + "  ports = [\"8080:80\"]\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "port 8080/tcp of the host is in use")
	m.declare("container \"q\" {\n" + image + "  ports = [\"127.0.0.1:8081:80\"]\n}\ncontainer \"p\" {\n" + image + "  ports = [\"8081:80\"]\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "Port 8081/tcp of the host leads into container:q, too")
	m.declare("variable \"pem\" {\n  default   = \"a\\nb\"\n  sensitive = true\n}\ncontainer \"p\" {\n" + image + "  env = { PEM = var.pem }\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "PEM has several lines")
	m.same("refused", found)

	// A container of golem's that goes before lets go of it; one that stays does not.
	port := "  ports = [\"8082:80\"]\n"
	m.declare("container \"q\" {\n" + image + port + "}\n")
	m.apply()
	m.declare("container \"p\" {\n" + image + port + "}\ncontainer \"q\" {\n" + image + "}\n")
	says(t, m.golem(1, "plan", site).stderr, "port 8082/tcp of the host is in use by the container q")
	m.declare("container \"q\" {\n" + image + "}\ncontainer \"p\" {\n" + image + port + "}\n")
	m.apply()
	m.destroy()
	m.samePods("after all", found)
}

func TestContainersImageIsPulledAndGoes(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.sh("podman save --quiet --format oci-archive --output /srv/pod.tar " + podImage + "; podman rmi " + podImage)
	found := m.print()
	two := func(names ...string) string {
		text := "variable \"word\" {\n  type      = string\n  sensitive = true\n  default   = \"hush hush\"\n}\n"
		for _, name := range names {
			text += fmt.Sprintf("container %q {\n  image   = \"oci-archive:/srv/pod.tar\"\n  command = [\"env\"]\n  env     = { WORD = var.word }\n  state   = \"stopped\"\n}\n", name)
		}
		return text
	}
	m.declare(two("one", "two"))
	said := m.plan() + m.plan("--json") + m.golem(0, "apply", "--auto-approve", "--json", site).stdout
	says(t, said, "made from oci-archive:/srv/pod.tar, which is pulled first")
	says(t, m.plan(), "No changes.")
	if env := m.must("podman", "inspect", "--format", "{{.Config.Env}}", "one"); !strings.Contains(env, "WORD=hush hush") {
		t.Errorf("its environment is %s", env)
	}
	says(t, m.must("podman", "images", "--quiet", "--no-trunc"), "sha256:")

	// The image stays as long as one needs it, and then goes, whoever it was pulled for.
	m.declare(two("two"))
	m.apply()
	if m.must("podman", "images", "--quiet") == "" {
		t.Error("the image is gone, and two needs it")
	}
	m.declare(strings.Replace(strings.Replace(two("two"), `"env"]`, `"end", "1"]`, 1), `"stopped"`, `"running"`, 1) + "policy {\n  retry {\n    max_attempts = 1\n  }\n}\n")
	bad := m.golem(3, "apply", "--auto-approve", site)
	said += bad.stdout + bad.stderr + m.plan("--destroy")
	says(t, bad.stdout, "WORD=(sensitive value)")
	says(t, said, "Images golem pulled - podman:oci-archive:/srv/pod.tar removed: nothing needs it any more")
	said += m.golem(0, "show").stdout + m.golem(0, "history").stdout + m.golem(0, "state", "list").stdout + m.golem(0, "state", "show", "container:two").stdout
	said += m.must("podman", "inspect", "--format", "{{.Config.CreateCommand}}", "two")
	if strings.Contains(said, "hush hush") {
		t.Errorf("the secret is shown:\n%s", said)
	}
	id := m.must("podman", "inspect", "--format", "{{.Image}}", "two")
	m.must("podman", "tag", strings.TrimSpace(id), "localhost/mine:1")
	says(t, m.plan("--destroy"), "podman:oci-archive:/srv/pod.tar left as it is: somebody gave it another name: it is called "+podImage+" and localhost/mine:1")
	m.must("podman", "rmi", "localhost/mine:1")
	m.destroy()
	m.same("after destroy", found)

	// Pulled for one that fails, it goes with it; what cannot be pulled leaves nothing.
	for image, why := range map[string]string{"oci-archive:/srv/pod.tar": "container bad: it ended at once", "registry.invalid/pod:1": "pull registry.invalid/pod:1: "} {
		m.declare("policy {\n  retry {\n    max_attempts = 1\n  }\n}\ncontainer \"bad\" {\n  image   = \"" + image + "\"\n  command = [\"end\", \"2\"]\n}\n")
		says(t, m.golem(3, "apply", "--auto-approve", site).stdout, why)
		m.samePods("rolled back", found)
	}
}

func TestNetworkWithSomebodysContainersStays(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.bystanders()
	found := m.print()
	lan := func(subnet string) string {
		return fmt.Sprintf("network \"lan\" {\n  subnet = %q\n}\ncontainer \"own\" {\n  image    = %q\n  networks = [\"lan\"]\n}\n", subnet, podImage)
	}
	m.declare(lan("10.77.0.0/24"))
	m.apply()
	m.declare(lan("10.78.0.0/24"))
	says(t, m.plan(), "~ network:lan replace a network cannot be changed: it is removed, and a new one made: 10.78.0.0/24; the container own is cut off from it and put on the new one")
	m.apply()
	if ip := m.must("podman", "inspect", "--format", "{{.NetworkSettings.Networks.lan.IPAddress}}", "own"); !strings.HasPrefix(ip, "10.78.0.") {
		t.Errorf("it is at %s", ip)
	}
	m.must("podman", "network", "connect", "lan", "hand")
	m.declare(lan("10.79.0.0/24"))
	says(t, m.golem(1, "plan", site).stderr, "golem did not make the container hand on it")
	m.declare("")
	saysAll(t, m.plan(), "- network:lan forget left as it is: the container hand is on it, and golem did not make that", "- container:own remove")
	m.apply()
	m.must("podman", "network", "disconnect", "lan", "hand")
	m.must("podman", "network", "rm", "lan")
	m.samePods("after all", found)

	// Addresses that another has are told before anything is touched.
	m.declare("file \"/etc/before\" {\n  content = \"x\"\n}\nnetwork \"n\" {\n  subnet = \"10.88.7.0/24\"\n}\n")
	says(t, m.golem(1, "apply", "--auto-approve", site).stderr, "The network podman has 10.88.0.0/16, and 10.88.7.0/24 overlaps with that")
	m.declare("network \"n\" {\n  driver = \"nosuch\"\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "Podman has no driver \"nosuch\" here; it has bridge")
	m.must("ip", "address", "add", "10.97.3.1/24", "dev", "lo")
	m.declare("network \"n\" {\n  subnet = \"10.97.0.0/16\"\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "The host's interface lo has the address 10.97.3.1/24, and 10.97.0.0/16 overlaps with its subnet")
	m.must("ip", "address", "del", "10.97.3.1/24", "dev", "lo")
	m.declare("network \"n\" {\n  subnet = \"10.99.0.0/16\"\n}\nnetwork \"m\" {\n  subnet = \"10.99.7.0/24\"\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "10.99.7.0/24 has addresses of network:n in it")
	m.samePods("refused", found)

	// One that is there already is neither made nor removed.
	m.declare("network \"hand\" {\n  internal = true\n}\n")
	says(t, m.golem(1, "plan", site).stderr, "The network hand is there, golem did not make it, and it is not as declared: internal false, not true")
	m.declare("network \"hand\" {}\n")
	m.apply()
	m.destroy()
	m.same("after destroy", found)
}

// Docker is asked by the same words.
func TestContainersOfDocker(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.write("/usr/local/bin/docker", "#!/bin/sh\necho \"docker $*\" >>/dev/shm/docker.calls\nexec podman \"$@\"\n")
	m.must("chmod", "755", "/usr/local/bin/docker")
	m.must("mkdir", "-p", "/etc/containers/networks")
	found := m.print()
	m.declare(strings.NewReplacer("network \"lan\" {", "network \"lan\" {\n  engine = \"docker\"", "  restart  = \"always\"\n", "  engine   = \"docker\"\n",
		"  mounts   = [{ source = \"/srv/conf\", target = \"/conf\", read_only = true }, { volume = \"hand\", target = \"/hand\" }]\n", "").Replace(webContainer("dock", "")))
	m.apply()
	says(t, m.plan(), "No changes.")
	if said := m.answers(8080); said != "dock" {
		t.Errorf("it says %q", said)
	}
	m.destroy()
	m.same("after destroy", found)
	saysAll(t, m.read("/dev/shm/docker.calls"), "docker create --name=web --pull=never", "docker network create", "docker rm --force --volumes")

	// What somebody made with it is adopted as docker's, where there is no podman.
	m.sh("mv /usr/bin/podman /usr/lib/podman.moved; sed -i 's,exec podman,exec /usr/lib/podman.moved,' /usr/local/bin/docker; mkdir /var/lib/docker; docker network create own; docker create --name old --network own " + podImage)
	scan := m.golem(0, "adopt", "--scan").stdout
	saysAll(t, scan, "network \"own\" {", "container \"old\" {", "engine   = \"docker\"", "networks = [\"own\"]", "of "+podImage)
	m.write("/root/docker/main.hcl", scan[:strings.Index(scan, "scroll")]+scan[strings.Index(scan, "scroll \"containers\""):])
	m.golem(0, "apply", "--auto-approve", "/root/docker")
	says(t, m.golem(0, "plan", "--detailed-exitcode", "/root/docker").stdout, "No changes. 2 glyphs are as the scroll says.")
	says(t, m.golem(1, "adopt", "--print-only", "container", "none").stderr, "docker has no such container")
}

var soaking = os.Getenv("GOLEM_SOAK") != ""

// TestContainersSurviveEveryKill kills golem and podman at every call that changes
// something: one round of the ways in a soak, otherwise of a container that never runs.
func TestContainersSurviveEveryKill(t *testing.T) {
	t.Parallel()
	scroll := "network \"lan\" {\n  subnet = \"10.77.0.0/24\"\n}\ncontainer \"web\" {\n  image    = \"" + podImage + "\"\n  networks = [\"lan\"]\n"
	if !soaking {
		scroll += "  state    = \"stopped\"\n"
	}
	acts(t, func(t *testing.T, act string) {
		m := bootPodman(t)
		m.bystanders()
		newSaboteur(m, "podman").walk(act, scroll+"}\n")
	})
}

// TestContainersChangeSurvivesEveryKill kills golem and podman at every call of a change
// that makes a new container and a new network: recovery leaves the old ones or the new.
func TestContainersChangeSurvivesEveryKill(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.bystanders()
	s := newSaboteur(m, "podman")
	found := m.print()
	scroll := func(subnet, word string) string {
		text := fmt.Sprintf("network \"lan\" {\n  subnet = %q\n}\ncontainer \"web\" {\n  image    = %q\n  networks = [\"lan\"]\n  env      = { WORD = %q }\n", subnet, podImage, word)
		if !soaking {
			text += "  state    = \"stopped\"\n"
		}
		return text + "}\n"
	}
	settle := func(subnet, word string) []string {
		m.declare(scroll(subnet, word))
		m.apply()
		return timeless(m.print())
	}
	was, is := settle("10.77.0.0/24", "one"), settle("10.78.0.0/24", "two")
	ways := []string{killedAtStart, killedAtEnd, killedUnder, killedMidway}
	rounds, every := 1, 4 // some of the calls, and all of them in every way
	if soaking {
		rounds, every = len(ways), 1
	}
	for first := range rounds {
		for n := 1; ; n += every {
			settle("10.77.0.0/24", "one")
			m.declare(scroll("10.78.0.0/24", "two"))
			how := ways[(n+first)%len(ways)]
			struck := s.at(n, how, func() { m.run("golem", "apply", "--auto-approve", site) })
			if struck == "" {
				break
			}
			at := fmt.Sprintf("%s at call %d (%s)", how, n, struck)
			m.golem(0, "recover")
			if now := timeless(m.print()); !slices.Equal(now, was) && !slices.Equal(now, is) {
				t.Fatalf("%s: neither as before nor as after. To before:\n%sTo after:\n%s", at, difference(was, now), difference(is, now))
			}
			if diff := difference(is, settle("10.78.0.0/24", "two")); diff != "" {
				t.Fatalf("%s, and after the next apply:\n%s", at, diff)
			}
		}
	}
	m.destroy()
	m.same("after all, and destroy", found)
}

func TestContainerExampleSettlesAndComesBack(t *testing.T) {
	t.Parallel()
	m := bootPodman(t)
	m.sh("mkdir -p /etc/containers/networks; podman volume create site-data >/dev/null; podman save --quiet --format docker-archive --output /srv/site.tar " + podImage + "; podman rmi " + podImage)
	args := []string{m.example("container"), "--var", "image=docker-archive:/srv/site.tar"}
	found := m.print()
	plan := m.golem(0, append([]string{"plan"}, args...)...).stdout
	saysAll(t, plan, "+ container:site install made from docker-archive:/srv/site.tar, which is pulled first, and started", "+ network:site install made: 10.89.7.0/24")
	m.golem(0, append([]string{"apply", "--auto-approve"}, args...)...)
	says(t, m.golem(0, append([]string{"plan"}, args...)...).stdout, "No changes.")
	m.golem(0, "destroy", "--auto-approve", "--name", "container")
	m.same("after destroy", found)
}
