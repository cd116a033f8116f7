package scrolls

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForEachMakesAGlyphForEachKeyInTheirOrder(t *testing.T) {
	s := must(t, `
variable "sites" {
  type    = map(object({ port = number }))
  default = { b = { port = 2 }, a = { port = 1 } }
}
file "site" {
  for_each = var.sites
  path     = "/etc/${each.key}.conf"
  content  = "port ${each.value.port}"
}
file "set" {
  for_each = toset(["y", "x"])
  path     = "/set/${each.key}"
  content  = each.value
}
file "none" {
  for_each = {}
  path     = "/none/${each.key}"
  content  = ""
}
file "object" {
  for_each = { one = 1, two = "zwei" }
  when     = each.key == "two"
  path     = "/object/${each.key}"
  content  = each.value
}`)
	var got []string
	for _, g := range s.Glyphs() {
		got = append(got, string(g.Key)+" "+fmt.Sprint(g.Attrs["content"]))
	}
	want := []string{
		"file:/etc/a.conf port 1", "file:/etc/b.conf port 2", "file:/set/x x", "file:/set/y y", "file:/object/two zwei",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhenFalseIsNotDeclared(t *testing.T) {
	s := must(t, `
name = "x"
variable "on" { default = false }
file "/a" {
  when    = var.on
  content = "${file("nowhere")}"
}
file "/b" { content = "" }
`)
	if diff := cmp.Diff([]string{"x file:/b"}, keys(s)); diff != "" {
		t.Error(diff)
	}
	s = must(t, `
name = "x"
scroll "off" {
  when = false
  scroll "in" {
    source = "./nowhere"
  }
}
scroll "empty" {
  file "/a" {
    when    = false
    content = ""
  }
}
`)
	if len(s.Leaves) != 0 {
		t.Errorf("leaves %v", keys(s))
	}
}

func TestScrollUnderForEachIsALeafForEachKey(t *testing.T) {
	s := must(t, `
scroll "sites" {
  for_each = { a = 1, "b/c" = 2 }
  scroll "nginx" {
    policy {
      retry {
        max_attempts = each.value
      }
    }
    file "page" {
      path    = "/srv/${each.key}"
      content = each.value
    }
    file "inner" {
      for_each = toset(["x"])
      path     = "/srv/${each.value}${each.key}${host.cpus}"
      when     = host.cpus == 3
      content  = ""
    }
  }
}`)
	want := []string{`sites["a"]/nginx file:/srv/a`, `sites["b/c"]/nginx file:/srv/b/c`}
	if diff := cmp.Diff(want, keys(s)); diff != "" {
		t.Error(diff)
	}
	if a, b := s.Leaves[0].Policy.Retry.MaxAttempts, s.Leaves[1].Policy.Retry.MaxAttempts; a != 1 || b != 2 {
		t.Errorf("attempts %d and %d", a, b)
	}
}
