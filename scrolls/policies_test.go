package scrolls

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEachKnobIsInheritedOnItsOwnNearestWins(t *testing.T) {
	host := filepath.Join(t.TempDir(), "golem.hcl")
	text := `
policy {
  timeout     = "1m"
  max_removes = 7
  retry {
    max_attempts = 2
    base_delay   = host.hostname == "box" ? "1s" : "2s"
  }
}`
	if err := os.WriteFile(host, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := must(t, `
variable "tries" { default = 3 }
policy {
  on_exhaust = "keep"
  timeout    = null
  retry { max_attempts = var.tries }
}
scroll "a" {
  policy {
    timeout = "3m"
    retry {
      jitter_fraction    = 0
      backoff_multiplier = 1.5
    }
  }
  scroll "leaf" {
    policy {
      on_exhaust = "rollback"
      retry { max_elapsed = "0s" }
    }
    file "/a" { content = "" }
  }
}
scroll "b" {
  file "/b" { content = "" }
}`, func(o *Options) { o.HostPolicy = host })
	root := BuiltinPolicy
	root.Timeout, root.MaxRemoves, root.OnExhaust = time.Minute, 7, "keep"
	root.Retry.MaxAttempts, root.Retry.BaseDelay = 3, time.Second
	a := root
	a.Timeout, a.Retry.JitterFraction, a.Retry.BackoffMultiplier = 3*time.Minute, 0, 1.5
	leaf := a
	leaf.OnExhaust, leaf.Retry.MaxElapsed = "rollback", 0
	want := map[string]Policy{"": root, "a": a, "a/leaf": leaf, "b": root}
	if diff := cmp.Diff(want, s.Policies); diff != "" {
		t.Error(diff)
	}
	if s.Leaves[0].Policy != leaf || s.Leaves[1].Policy != root {
		t.Errorf("the leaves have %+v and %+v", s.Leaves[0].Policy, s.Leaves[1].Policy)
	}
}

func TestBuiltinPolicyHoldsWhereNothingIsWritten(t *testing.T) {
	missing := func(o *Options) { o.HostPolicy = filepath.Join(t.TempDir(), "none.hcl") }
	s := must(t, `file "/a" { content = "" }`, missing)
	if s.Leaves[0].Policy != BuiltinPolicy {
		t.Errorf("%+v", s.Leaves[0].Policy)
	}
}

// A blank file says nothing; a link to nothing was meant to say something.
func TestAHostPolicyThatIsBlankOrLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	blank, link := filepath.Join(dir, "blank.hcl"), filepath.Join(dir, "link.hcl")
	if err := errors.Join(os.WriteFile(blank, []byte("\n"), 0o600), os.Symlink("none", link), os.Symlink("none", filepath.Join(dir, "d"))); err != nil {
		t.Fatal(err)
	}
	s := must(t, `file "/a" { content = "" }`, func(o *Options) { o.HostPolicy = blank })
	if s.Leaves[0].Policy != BuiltinPolicy {
		t.Errorf("%+v", s.Leaves[0].Policy)
	}
	for _, name := range []string{link, filepath.Join(dir, "d", "golem.hcl")} {
		if _, err := loadText(t, `file "/a" { content = "" }`, func(o *Options) { o.HostPolicy = name }); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostPolicyThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	if s, err := loadText(t, `file "/a" { content = "" }`, func(o *Options) { o.HostPolicy = dir }); err == nil {
		t.Errorf("a directory was read as a policy: %+v", s.Leaves[0].Policy)
	}
}

func TestHostPolicySeesNoScrollsVariables(t *testing.T) {
	host := filepath.Join(t.TempDir(), "golem.hcl")
	if err := os.WriteFile(host, []byte(`policy { timeout = var.t }`), 0o600); err != nil {
		t.Fatal(err)
	}
	mistake(t, `
variable "t" { default = "1m" }
file "/a" { content = "" }`, func(o *Options) { o.HostPolicy = host })
}
