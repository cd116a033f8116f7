package reconcilers

import (
	"fmt"
	"os/exec"
	"testing"

	"pgregory.net/rapid"
)

func TestCompareVersionsOrdersAsDpkgDoes(t *testing.T) {
	ordered := []string{
		"0~~", "0~", "0", "0a", "0+", "0.0", "1.0~rc1-1", "1.0", "1.0-1", "1.0-1+b1", "1.0-1+deb12u1", "1.0-1.1", "1.0-2", "1.0-10",
		"1.0a", "1.0+dfsg-1", "1.2-3-1", "1.10", "09.9", "10", "1:0.1", "1:1.2-1", "2:0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareVersions(a, b)
			if i < j && got >= 0 || i == j && got != 0 || i > j && got <= 0 {
				t.Errorf("compare %q and %q: %d", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"1.0", "0:1.0"}, {"1.0-0", "1.0"}, {"1.00", "1.0"}, {"1.0-01", "1.0-1"}} {
		if c := compareVersions(same[0], same[1]); c != 0 {
			t.Errorf("compare %q and %q: %d", same[0], same[1], c)
		}
	}
}

// Where there is a dpkg, it is asked whether golem is right.
func TestCompareVersionsAgreesWithDpkg(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("no dpkg here to compare with")
	}
	version := rapid.Custom(func(t *rapid.T) string {
		epoch := rapid.SampledFrom([]string{"", "", "0:", "1:", "10:"}).Draw(t, "epoch")
		return epoch + rapid.StringMatching(`[0-9]([0-9]|[ab]|[.+~]){0,5}(-[0-9a+.~]{1,3})?`).Draw(t, "version")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := version.Draw(t, "a"), version.Draw(t, "b")
		got := compareVersions(a, b)
		op := map[bool]string{true: "lt", false: "ge"}[got < 0]
		if got == 0 {
			op = "eq"
		}
		if out, err := exec.Command("dpkg", "--compare-versions", a, op, b).CombinedOutput(); err != nil {
			t.Fatal(fmt.Sprintf("dpkg says that %q is not %s %q (%v %s)", a, op, b, err, out))
		}
	})
}
