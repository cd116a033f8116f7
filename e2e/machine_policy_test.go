package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// site is an nginx with one page, and a check of what it says.
func sitePage(word, want string) string {
	return fmt.Sprintf(`
scroll "site" {
  policy {
    retry {
      max_attempts = 2
    }
  }
  apt "nginx-light" {
    purge = true
  }
  file "/srv/www/index.html" {
    content = "<h1>%[1]s</h1>\n"
  }
  file "/etc/nginx/conf.d/site.conf" {
    content = "server { listen 8080; root /srv/www; add_header X-Word %[1]s; }\n"
  }
  service "nginx.service" {
    state     = "running"
    reload_on = ["file:/etc/nginx/conf.d/*"]
  }
  check "http" {
    url      = "http://127.0.0.1:8080/"
    contains = "%[2]s"
  }
}
scroll "sibling" {
  file "/etc/sibling" {
    content = "%[1]s\n"
  }
}
`, word, want)
}

func TestACheckThatFailsBringsTheOldPageBackWithoutAPause(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.declare(sitePage("old", "old"))
	says(t, m.plan(), "Checks site http://127.0.0.1:8080/ answers with status 200 and \"old\"")
	m.apply()
	pid := m.must("systemctl", "show", "-P", "MainPID", "nginx.service")
	client := m.start("bash", "-c", `while sleep 0.02; do
		exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && grep -q 'HTTP/1.1 200' <&3 || { echo "no answer"; exit 1; }
		exec 3<&-
	done`)
	m.declare(sitePage("new", "something else"))
	a := m.golem(3, "apply", "--auto-approve", site)
	says(t, a.stdout, "rolled back site: it failed, and is as it was before this run")
	says(t, a.stdout, `check http: http://127.0.0.1:8080/ answers without "something else"`)
	says(t, a.stdout, "settled sibling")
	if page := m.page(8080); !strings.Contains(page, "<h1>old</h1>") || !strings.Contains(page, "X-Word: old") {
		t.Errorf("nginx serves\n%s", page)
	}
	if now := m.must("systemctl", "show", "-P", "MainPID", "nginx.service"); now != pid {
		t.Errorf("nginx was started anew: %s, then %s", pid, now)
	}
	m.signal(client, 9)
	if said := client.Stdout.(*syncBuffer).String(); strings.Contains(said, "no answer") {
		t.Error("a client got no answer on the way there and back")
	}
	if m.read("/etc/sibling") != "new\n" {
		t.Error("the sibling did not settle")
	}
	m.declare(sitePage("new", "new"))
	m.apply()
	says(t, m.page(8080), "<h1>new</h1>")
}

// nineLeaves is the story of the failing unit: eight leaves that settle, and one whose
// unit cannot work.
func nineLeaves(exec string) string {
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "scroll \"leaf%d\" {\n  file \"/etc/story/%d\" {\n    content = \"%d\\n\"\n  }\n}\n", i, i, i)
	}
	fmt.Fprintf(&b, `scroll "failing" {
  policy {
    on_exhaust = "keep"
    retry {
      max_attempts = 2
      base_delay   = "10ms"
    }
  }
  file "/etc/story/before" {
    content = "before\n"
  }
  process "story" {
    command = [%s]
    restart = "no"
  }
  file "/etc/story/after" {
    content = "after\n"
  }
}
`, exec)
	return b.String()
}

func TestTheStoryOfTheFailingUnit(t *testing.T) {
	t.Parallel()
	m := boot(t)
	m.must("mkdir", "/etc/story")
	m.write("/etc/story/3", "found\n")
	found := m.print()
	m.declare(nineLeaves(`"/bin/false"`))
	for _, when := range []string{"the first run", "again"} {
		a := m.golem(3, "apply", "--auto-approve", "--json", site)
		lines := strings.Split(strings.TrimSpace(a.stdout), "\n")
		var report struct {
			Outcome string
			Summary struct{ Unchanged int }
			Leaves  []struct {
				Leaf, Outcome string
				Attempts      int
				Failures      []struct{ Key, Message string }
			}
		}
		m.check(json.Unmarshal([]byte(lines[len(lines)-1]), &report))
		if report.Outcome != "partial" || len(report.Leaves) != 9 {
			t.Fatalf("%s: %s, %d leaves", when, report.Outcome, len(report.Leaves))
		}
		for _, leaf := range report.Leaves {
			want := "settled"
			if leaf.Leaf == "failing" {
				want = "kept"
				if leaf.Attempts != 2 || len(leaf.Failures) == 0 || leaf.Failures[0].Key != "process:story" {
					t.Errorf("%s: %+v", when, leaf)
				}
			}
			if leaf.Outcome != want {
				t.Errorf("%s: %s is %s, want %s", when, leaf.Leaf, leaf.Outcome, want)
			}
		}
		if !m.exists("/etc/story/before") || m.exists("/etc/story/after") || m.exists("/etc/systemd/system/story.service") {
			t.Errorf("%s: the failing leaf is not as far as it came", when)
		}
	}
	m.declare(nineLeaves(`"/bin/sleep", "infinity"`))
	says(t, m.plan(), "Plan: 2 to install, 0 to replace, 0 to repair, 0 to remove, 9 unchanged.")
	m.apply()
	if m.active("story.service") != "active" || !m.exists("/etc/story/after") {
		t.Error("mended, the leaf did not settle")
	}
	m.declare("")
	m.apply()
	m.same("after the empty scroll", found)
}
