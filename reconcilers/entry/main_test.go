package entry

import (
	"flag"
	"os"
	"testing"
)

// TestMain draws more in the property tests where time is no matter.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "300"
		if os.Getenv("GOLEM_SOAK") != "" {
			checks = "20000"
		}
		if err := f.Value.Set(checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
