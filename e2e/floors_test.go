package e2e

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors are golem's packages from top to bottom. Each may import those after it. The
// cellar below them all, reconcilers/entry, knows texts only.
var floors = []string{"golem", "golem/apply", "golem/plan", "golem/reconcilers", "golem/state", "golem/scrolls", "golem/reconcilers/entry"}

// fakes stand in for a host's programs in tests. They import nothing of golem, and no
// floor imports them.
const fakes = "golem/reconcilers/fake"

// goTool runs the go command in the module's root.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func TestAFloorImportsOnlyFloorsBelowIt(t *testing.T) {
	for i, floor := range floors {
		deps := strings.Fields(goTool(t, "list", "-deps", floor))
		if !slices.Contains(deps, floor) {
			t.Fatalf("go list -deps %s does not name %s itself", floor, floor)
		}
		for _, dep := range deps {
			if dep != "golem" && !strings.HasPrefix(dep, "golem/") {
				continue
			}
			if at := slices.Index(floors, dep); at < 0 {
				t.Errorf("%s imports %s, which is no floor", floor, dep)
			} else if at < i {
				t.Errorf("%s imports %s, a floor above it", floor, dep)
			}
		}
	}
}

func TestEveryPackageIsAFloorOrE2E(t *testing.T) {
	for _, pkg := range strings.Fields(goTool(t, "list", "./...")) {
		if pkg != "golem/e2e" && pkg != fakes && !slices.Contains(floors, pkg) {
			t.Errorf("%s is neither a floor nor e2e", pkg)
		}
	}
}

func TestFakesImportNothingOfGolem(t *testing.T) {
	for _, dep := range strings.Fields(goTool(t, "list", "-deps", fakes)) {
		if dep != fakes && (dep == "golem" || strings.HasPrefix(dep, "golem/")) {
			t.Errorf("%s imports %s", fakes, dep)
		}
	}
}

func TestE2EImportsNothingOfGolem(t *testing.T) {
	for _, imp := range strings.Fields(goTool(t, "list", "-f", `{{join .TestImports " "}} {{join .XTestImports " "}} {{join .Imports " "}}`, "golem/e2e")) {
		if imp == "golem" || strings.HasPrefix(imp, "golem/") {
			t.Errorf("e2e imports %s; it is to run the binary", imp)
		}
	}
}

// A library stays on the floor that has the use for it.
func TestLibrariesStayOnTheirFloors(t *testing.T) {
	rules := []struct {
		library string
		floors  []string // that may import it directly
	}{
		{"modernc.org/sqlite", []string{"golem/state"}},
		{"database/sql", []string{"golem/state"}},
		{"github.com/urfave/cli/v3", []string{"golem"}},
		{"github.com/charmbracelet/lipgloss", []string{"golem/plan"}},
		{"github.com/hashicorp/hcl/v2", []string{"golem/scrolls"}},
	}
	for _, floor := range floors {
		imports := strings.Fields(goTool(t, "list", "-f", `{{join .Imports " "}}`, floor))
		for _, rule := range rules {
			if slices.Contains(imports, rule.library) && !slices.Contains(rule.floors, floor) {
				t.Errorf("%s imports %s; only %v may", floor, rule.library, rule.floors)
			}
		}
	}
}

// bubbletea asks the terminal for its colours when it is loaded and waits five seconds
// where nobody answers.
func TestBubbleteaIsNeverLinked(t *testing.T) {
	deps := strings.Fields(goTool(t, "list", "-deps", "golem"))
	if !slices.Contains(deps, "github.com/charmbracelet/lipgloss") {
		t.Fatal("go list -deps golem does not name lipgloss, so this test sees nothing")
	}
	for _, dep := range deps {
		if strings.Contains(dep, "bubbletea") || strings.Contains(dep, "charmbracelet/bubbles") {
			t.Errorf("golem links %s", dep)
		}
	}
}

// modernc.org/sqlite works with exactly the libc that its own go.mod names.
func TestLibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	var sqlite, libc struct{ Version, GoMod string }
	for path, into := range map[string]any{"modernc.org/sqlite": &sqlite, "modernc.org/libc": &libc} {
		if err := json.Unmarshal([]byte(goTool(t, "list", "-m", "-json", path)), into); err != nil {
			t.Fatal(err)
		}
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(goTool(t, "mod", "edit", "-json", sqlite.GoMod)), &mod); err != nil {
		t.Fatal(err)
	}
	asked := ""
	for _, r := range mod.Require {
		if r.Path == "modernc.org/libc" {
			asked = r.Version
		}
	}
	if asked == "" || libc.Version != asked {
		t.Errorf("modernc.org/libc is %s; sqlite %s asks for %q", libc.Version, sqlite.Version, asked)
	}
}
