package scrolls

import "time"

// A Policy says how a leaf is enacted and what happens when that fails. Each knob is
// inherited on its own, nearest wins (seeds/reversible-reconcile.txt, "Failure stops
// at the leaf").
type Policy struct {
	OnExhaust  string        // "rollback" or "keep"
	Timeout    time.Duration // for one external command
	MaxRemoves int           // removes an unattended run may make; -1: the built-in guard
	Retry      Retry
}

// Retry bounds the attempts of a glyph (MaxAttempts, delays) and of a leaf (MaxElapsed).
type Retry struct {
	MaxAttempts       int // per glyph, the first try included
	BaseDelay         time.Duration
	BackoffMultiplier float64
	MaxDelay          time.Duration
	JitterFraction    float64       // 0 to 1
	MaxElapsed        time.Duration // per leaf, from its first failure
}

// BuiltinPolicy is what holds where nothing is written.
var BuiltinPolicy = Policy{
	OnExhaust:  "rollback",
	Timeout:    10 * time.Minute,
	MaxRemoves: -1,
	Retry: Retry{
		MaxAttempts:       5,
		BaseDelay:         200 * time.Millisecond,
		BackoffMultiplier: 2,
		MaxDelay:          30 * time.Second,
		JitterFraction:    0.2,
		MaxElapsed:        2 * time.Minute,
	},
}
