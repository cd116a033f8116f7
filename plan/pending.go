package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golem/state"
)

// Pending is a run that waits to be confirmed, as the journal has it.
type Pending struct {
	Lineage  string        `json:"lineage"`
	Command  string        `json:"command"`
	Revision int           `json:"revision"` // that the run is, or will be once it has ended
	Within   time.Duration `json:"within"`   // how long there was to confirm it
	Unit     string        `json:"unit"`     // of the systemd units that take it back
	Boot     string        `json:"boot"`     // the boot that it was begun in
	Due      time.Duration `json:"due"`      // that boot's uptime when it is taken back
	Until    time.Time     `json:"until"`    // the same moment, as clocks showed it
}

// Lasting is a duration as a person writes it: 5m, and not 5m0s.
func Lasting(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ReadPending reads what the journal has of a run that waits; nil stays nil.
func ReadPending(p *state.Pending) (*Pending, error) {
	if p == nil {
		return nil, nil
	}
	var body Pending
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return nil, fmt.Errorf("read what waits to be confirmed: %w", err)
	}
	return &body, nil
}

// Sentence tells what waits, and until when.
func (p *Pending) Sentence() string {
	if time.Now().After(p.Until) {
		return fmt.Sprintf("the %s of %s (revision %d) was to be confirmed by %s, and is being taken back",
			p.Command, p.Lineage, p.Revision, clock(p.Until))
	}
	return fmt.Sprintf("the %s of %s (revision %d) waits to be confirmed until %s", p.Command, p.Lineage, p.Revision, clock(p.Until))
}

// busySentence tells that another golem is at work.
func busySentence(h *state.Holder) string {
	return fmt.Sprintf("Another golem is at work, process %d since %s: this is a state in between. Plan again once it has ended.", h.PID, clockOf(h.Since))
}

// PendingJSON is a run that waits to be confirmed, as JSON has it.
type PendingJSON struct {
	Lineage  string `json:"lineage"`
	Revision int    `json:"revision"`
	Within   string `json:"within"`
	Until    string `json:"until"`
}

// Clock is the moment as this host's clock shows it.
func (p *PendingJSON) Clock() string { return clockOf(p.Until) }

// clockOf is a moment that is written as RFC 3339 has it; what is not stays as it is.
func clockOf(written string) string {
	at, err := time.Parse(time.RFC3339, written)
	if err != nil {
		return written
	}
	return clock(at.Local())
}

// clock is a moment as a person reads it: with its day where that is another.
func clock(at time.Time) string {
	if now := time.Now(); at.Sub(now).Abs() < 12*time.Hour {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}

// JSON is how documents tell it; nil stays nil.
func (p *Pending) JSON() *PendingJSON {
	if p == nil {
		return nil
	}
	return &PendingJSON{p.Lineage, p.Revision, Lasting(p.Within), p.Until.UTC().Format(time.RFC3339)}
}
