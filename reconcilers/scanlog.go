package reconcilers

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// A dpkgLog is when dpkg worked, as far as its log goes back.
type dpkgLog struct {
	// done is when each package was last brought to where it is, by its resource.
	done map[string]time.Time
	runs []*dpkgRun // in the order of their beginnings
}

// A dpkgRun is one run of dpkg. Its log is in the time of the zone that the host was in then, and
// does not say which: until settle, from, to and the times of what it did are as if that were UTC.
type dpkgRun struct {
	from, to           time.Time
	unpacked, complete map[string]time.Time // by resource
}

// readLog reads dpkg's log.
func (s *scanner) readLog() (*dpkgLog, error) {
	l := &dpkgLog{done: map[string]time.Time{}}
	files, err := s.logs("/var/log/dpkg.log")
	for _, file := range files {
		first := true
		s.logLines(file, func(line string) {
			if len(line) < len(time.DateTime)+2 {
				return
			}
			at, err := time.Parse(time.DateTime, line[:len(time.DateTime)])
			if err != nil {
				return
			}
			did := strings.Fields(line[len(time.DateTime):])
			if first || did[0] == "startup" {
				l.runs = append(l.runs, &dpkgRun{at, at, map[string]time.Time{}, map[string]time.Time{}})
			}
			first = false
			run := l.runs[len(l.runs)-1]
			run.to = at
			if len(did) < 3 || did[0] != "status" {
				return
			}
			name, arch, _ := strings.Cut(did[2], ":")
			switch resource := s.dpkg.resource(name, arch); did[1] {
			case "unpacked":
				run.unpacked[resource] = at
			case dpkgInstalled:
				run.complete[resource] = at
			}
		})
	}
	l.settle(s.unpacked)
	return l, err
}

// settle finds out the zone of each run, and what was done last of each package. The list of a
// package's files is written when it is unpacked, and its time has no zone. A run of which no
// package was unpacked last has the host's zone of now, or where that was not so for the run
// nearest to it, that one's.
func (l *dpkgLog) settle(unpacked map[string]time.Time) {
	sort.SliceStable(l.runs, func(i, j int) bool { return l.runs[i].from.Before(l.runs[j].from) })
	shifts := make([]*time.Duration, len(l.runs))
	for i, run := range l.runs {
		shifts[i] = run.shift(unpacked)
	}
	for i, run := range l.runs {
		shift := localShift(run.from)
		if shifts[i] != nil {
			shift = *shifts[i]
		} else if near := nearest(shifts, i); near >= 0 && localShift(l.runs[near].from) != *shifts[near] {
			shift = *shifts[near]
		}
		run.from, run.to = run.from.Add(shift), run.to.Add(shift)
		for resource, at := range run.complete {
			if at = at.Add(shift); at.After(l.done[resource]) {
				l.done[resource] = at
			}
		}
	}
	sort.SliceStable(l.runs, func(i, j int) bool { return l.runs[i].from.Before(l.runs[j].from) })
}

// localShift is how far a time of this host's zone, as it is set now, is from the same in UTC.
func localShift(wall time.Time) time.Duration {
	local := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, time.Local)
	return local.Sub(wall)
}

// shift is how far a run's times are from UTC, by what most packages say that it unpacked; nil
// where none says. Zones are quarters of an hour apart.
func (r *dpkgRun) shift(unpacked map[string]time.Time) *time.Duration {
	const quarter, slack, farthest = 15 * time.Minute, 30 * time.Second, 15 * time.Hour
	votes := map[time.Duration]int{}
	for resource, wall := range r.unpacked {
		if at, ok := unpacked[resource]; ok {
			off := at.Sub(wall)
			if whole := off.Round(quarter); (off-whole).Abs() <= slack && whole.Abs() <= farthest {
				votes[whole]++
			}
		}
	}
	var most *time.Duration
	for _, shift := range slices.Sorted(maps.Keys(votes)) {
		if most == nil || votes[shift] > votes[*most] {
			most = &shift
		}
	}
	return most
}

// nearest is the place of the shift that is known and stands nearest to another, an earlier one
// first; -1 for none.
func nearest(shifts []*time.Duration, to int) int {
	for far := 1; far < len(shifts); far++ {
		for _, at := range []int{to - far, to + far} {
			if at >= 0 && at < len(shifts) && shifts[at] != nil {
				return at
			}
		}
	}
	return -1
}

// ran says whether dpkg was at work in the second of a time: what was written then, scripts of
// packages wrote.
func (l *dpkgLog) ran(at time.Time) bool {
	at = at.Truncate(time.Second)
	after := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].from.After(at) })
	for i := after - 1; i >= 0 && i >= after-3; i-- { // runs do not overlap, but for their ends
		if !at.After(l.runs[i].to) {
			return true
		}
	}
	return false
}
