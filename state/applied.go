package state

// Applied returns one lineage's applied set as this transaction leaves it, in the
// order of application.
func (tx *Tx) Applied(lineage string) ([]Applied, error) {
	d, err := newDecoder(tx.c)
	if err != nil {
		return nil, err
	}
	var all Snapshot
	if err := tx.j.readApplied(d)(&all); err != nil {
		return nil, err
	}
	var own []Applied
	for _, a := range all.Applied {
		if a.Lineage == lineage {
			own = append(own, a)
		}
	}
	return own, nil
}
