package main

import (
	"testing"

	"golem/apply"
)

func TestEventsAsALogHasThem(t *testing.T) {
	for want, ev := range map[string]apply.Event{
		"web: started, 4 to enact":            {Type: "leaf_started", Leaf: "web", Glyphs: 4},
		"web: started":                        {Type: "leaf_started", Leaf: "web"},
		"":                                    {Type: "enacting", Leaf: "web", Key: "apt:nginx", Op: "install", Glyphs: 2},
		"web: installed apt:nginx":            {Type: "enacted", Leaf: "web", Key: "apt:nginx", Op: "install"},
		"web: repaired file:/etc/a":           {Type: "enacted", Leaf: "web", Key: "file:/etc/a", Op: "repair"},
		"web: recorded file:/etc/a":           {Type: "enacted", Leaf: "web", Key: "file:/etc/a", Op: "install", Unchanged: true},
		"web: forgot user:ann":                {Type: "enacted", Leaf: "web", Key: "user:ann", Op: "remove", Unchanged: true},
		"web: reloaded service:nginx.service": {Type: "triggered", Leaf: "web", Key: "service:nginx.service", Message: "reload"},
		"web: run command:x":                  {Type: "triggered", Leaf: "web", Key: "command:x", Message: "run"},
		"web: checking that 127.0.0.1:22 accepts connections":        {Type: "checking", Leaf: "web", Message: "127.0.0.1:22 accepts connections"},
		"web: attempt 2 failed, trying again in 1.3s: apt:nginx: no": {Type: "retrying", Leaf: "web", Key: "apt:nginx", Attempt: 2, Delay: 1.26, Cause: "no", Message: "no; trying again in 1.26s"},
		"web: still running after 1m10s: apt-get install nginx":      {Type: "alive", Leaf: "web", Key: "apt:nginx", Elapsed: 70, Message: "apt-get install nginx"},
		"web: still running after 10s: file:/big":                    {Type: "alive", Leaf: "web", Key: "file:/big", Elapsed: 10},
		"still running after 10s: looking at the host":               {Type: "alive", Elapsed: 10, Message: "looking at the host"},
		"web: failed: start nginx.service: it failed":                {Type: "failed", Leaf: "web", Key: "service:nginx.service", Cause: "start nginx.service: it failed\nand more", Message: "much more"},
		"web: failed: command:s: undo: run false: status 1":          {Type: "failed", Leaf: "web", Key: "command:s", Cause: "undo: run false: status 1"},
		"web: failed: start the container s: it ended":               {Type: "failed", Leaf: "web", Key: "container:s", Cause: "start the container s: it ended"},
		"taken back unless confirmed within 5m":                      {Type: "armed", Message: "taken back unless confirmed within 5m"},
		"web: rolled back":                                           {Type: "leaf_ended", Leaf: "web", Outcome: "rolled_back"},
		`we\u001bb: removed file:/\u000a`:                            {Type: "enacted", Leaf: "we\x1bb", Key: `file:/\u000a`, Op: "remove"},
	} {
		if got := eventText(ev); got != want {
			t.Errorf("%+v\nis %q\nwant %q", ev, got, want)
		}
	}
}

func TestALengthOfTimeIsShort(t *testing.T) {
	for s, want := range map[float64]string{0.0091: "9ms", 0.2: "200ms", 1.26: "1.3s", 9.99: "10s", 12.3: "12s", 70: "1m10s", 3600: "1h0m0s"} {
		if got := seconds(s); got != want {
			t.Errorf("%g seconds are %q, want %q", s, got, want)
		}
	}
}
