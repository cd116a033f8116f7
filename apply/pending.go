package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"golem/plan"
	"golem/reconcilers"
	"golem/state"
)

// pendingUnit names the units that take a run of a journal back: each journal has its own.
func pendingUnit(journal string) string {
	sum := sha256.Sum256([]byte(journal))
	return "golem-return-" + hex.EncodeToString(sum[:4])
}

// timeLeft is how long a run still waits to be confirmed: not at all after a reboot.
func timeLeft(p *plan.Pending, h *reconcilers.Host) time.Duration {
	if p.Boot != reconcilers.BootID() {
		return 0
	}
	return max(p.Due-h.Uptime(), 0)
}

// writePending journals that a run waits.
func writePending(tx *state.Tx, run int64, p *plan.Pending) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("journal what waits to be confirmed: %w", err)
	}
	return tx.SetPending(&state.Pending{Run: run, Body: body})
}

// A PendingError says that another run waits to be confirmed.
type PendingError struct{ Pending *plan.Pending }

func (e *PendingError) Error() string {
	return "nothing is changed now: " + e.Pending.Sentence()
}

// Hint says what ends the wait.
func (*PendingError) Hint() string {
	return "golem confirm keeps it; golem recover --unconfirmed takes it back now"
}

// pendingNow refuses while a run waits to be confirmed, in time or not.
func pendingNow(snap *state.Snapshot) error {
	p, err := plan.ReadPending(snap.Pending)
	if err != nil || p == nil {
		return err
	}
	return &PendingError{p}
}
