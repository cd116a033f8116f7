package reconcilers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killTree kills a command with all that it started: its process group, and its
// descendants in whatever group or session they have put themselves (apt gives dpkg one of
// its own). A daemon that has cut itself loose is not its descendant any more.
func killTree(pid int) error {
	// Stopped, they start nothing more while they are looked for.
	tree := map[int]bool{}
	for grew := true; grew; {
		grew = false
		for child, parent := range parents() {
			if !tree[child] && (parent == pid || tree[parent]) {
				tree[child], grew = true, true
				_ = syscall.Kill(child, syscall.SIGSTOP) // one that has just ended needs none
			}
		}
	}
	err := syscall.Kill(-pid, syscall.SIGKILL)
	for child := range tree {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	return err
}

// parents are all processes there are, with the parent of each.
func parents() map[int]int {
	all := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return all
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		var state string
		var parent int
		// The name before the last bracket may hold anything.
		if _, serr := fmt.Sscan(string(data[bytes.LastIndexByte(data, ')')+1:]), &state, &parent); err == nil && serr == nil {
			all[pid] = parent
		}
	}
	return all
}
