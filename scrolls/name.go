package scrolls

import "fmt"

// CheckName says why something cannot be a lineage's name; nil: it can.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is not a name. %s", name, nameRule)
	}
	return nil
}
