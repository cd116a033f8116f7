package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golem/scrolls"
)

func checkOf(kind string, a scrolls.Attrs) *scrolls.Glyph {
	return &scrolls.Glyph{Kind: kind, Attrs: a}
}

func TestCheckMistakesAreFoundBeforeAnyHost(t *testing.T) {
	for _, c := range []struct {
		kind  string
		attrs scrolls.Attrs
		want  string
	}{
		{"http", scrolls.Attrs{"url": "127.0.0.1:80"}, "Not a URL"},
		{"http", scrolls.Attrs{"url": "ftp://host/"}, "Not a URL"},
		{"http", scrolls.Attrs{"url": "http://host/", "status": json.Number("42")}, "Not a status"},
		{"http", scrolls.Attrs{"url": "http://host/", "status": json.Number("200.5")}, "Not a status"},
		{"http", scrolls.Attrs{"url": "http://host/", "timeout": "5"}, "Not a length of time"},
		{"http", scrolls.Attrs{"url": "http://host/", "timeout": "-1s"}, "Not a length of time"},
		{"tcp", scrolls.Attrs{"address": "22"}, "Not an address"},
		{"tcp", scrolls.Attrs{"address": ":22"}, "Not an address"},
		{"command", scrolls.Attrs{"run": []any{}}, "Command is empty"},
		{"unit", scrolls.Attrs{"unit": "x", "for": "ever"}, "Not a length of time"},
		{"http", scrolls.Attrs{"url": "http://host:99999/"}, "Not a port"},
		{"tcp", scrolls.Attrs{"address": "host:99999"}, "Not a port"},
		{"tcp", scrolls.Attrs{"address": "host:0"}, "Not a port"},
		{"tcp", scrolls.Attrs{"address": "host:+22"}, "Not a port"},
		{"tcp", scrolls.Attrs{"address": "host:22", "timeout": "1ns"}, "Not a length of time"},
		{"unit", scrolls.Attrs{"unit": "a b/c"}, "Not a unit name"},
		{"unit", scrolls.Attrs{"unit": "a b"}, "Not a unit name"},
		{"unit", scrolls.Attrs{"unit": ""}, "Unit name is empty"},
	} {
		for _, k := range Checks {
			if k.Name != c.kind {
				continue
			}
			if problems := k.Check(c.attrs); len(problems) != 1 || problems[0].Summary != c.want {
				t.Errorf("%s %v: %+v, want %q", c.kind, c.attrs, problems, c.want)
			}
		}
	}
}

// A port may have a name, and an address be one of IPv6.
func TestAddressesThatAreOnes(t *testing.T) {
	for _, address := range []string{"127.0.0.1:ssh", "[::1]:22", "localhost:65535"} {
		if problems := tcpCheck.Check(scrolls.Attrs{"address": address}); len(problems) > 0 {
			t.Errorf("%s: %+v", address, problems)
		}
	}
}

// A password in a URL is in no text, and in no name.
func TestAPasswordInAURLIsNotTold(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "hunter2" {
			t.Errorf("the server is asked with the password %q", password)
		}
	}))
	w := NewWorld(commandHost(t), nil)
	defer w.Close()
	attrs := scrolls.Attrs{"url": strings.Replace(server.URL, "http://", "http://me:hunter2@", 1) + "/p", "contains": "x"}
	missing := RunCheck(context.Background(), w, checkOf("http", attrs))
	server.Close()
	gone := RunCheck(context.Background(), w, checkOf("http", attrs))
	bad := httpCheck.Check(scrolls.Attrs{"url": "ftp://me:hunter2@host/"})
	for _, text := range []string{CheckText(checkOf("http", attrs)), fmt.Sprint(missing), fmt.Sprint(gone), fmt.Sprint(httpCheck.Identity(attrs)), bad[0].Detail} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "me:***@") {
			t.Errorf("it says %s", text)
		}
	}
}

// The check's own time goes before the policy's, and that before the ten seconds, which
// it can only cut short.
func TestTheTimeOfACommandsCheck(t *testing.T) {
	for _, c := range []struct {
		policy time.Duration
		own    string
		want   time.Duration
	}{
		{0, "", 10 * time.Second},
		{time.Second, "", time.Second},
		{time.Minute, "", 10 * time.Second},
		{time.Second, "3s", 3 * time.Second},
	} {
		var got time.Duration
		w := NewWorld(&Host{Exec: func(_ context.Context, c Command) (Output, error) {
			got = c.Timeout
			return Output{}, nil
		}}, nil)
		w.Timeout = c.policy
		check := checkOf("command", scrolls.Attrs{"run": []any{"true"}})
		if c.own != "" {
			check.Attrs["timeout"] = c.own
		}
		if err := RunCheck(context.Background(), w, check); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
		w.Close()
	}
}

func TestChecksHoldAndFail(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		}
		fmt.Fprint(w, "it works")
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	h := commandHost(t)
	w := NewWorld(h, nil)
	defer w.Close()
	for _, c := range []struct {
		check *scrolls.Glyph
		want  string // of the error; "" for none
	}{
		{checkOf("http", scrolls.Attrs{"url": server.URL}), ""},
		{checkOf("http", scrolls.Attrs{"url": server.URL, "contains": "works"}), ""},
		{checkOf("http", scrolls.Attrs{"url": server.URL, "contains": "fails"}), `answers without "fails"`},
		{checkOf("http", scrolls.Attrs{"url": server.URL + "/moved"}), ""},
		{checkOf("http", scrolls.Attrs{"url": server.URL + "/moved", "status": json.Number("302")}), ""},
		{checkOf("http", scrolls.Attrs{"url": server.URL + "/broken"}), "answers 502 Bad Gateway, not 200"},
		{checkOf("http", scrolls.Attrs{"url": "http://" + nobody}), "connection refused"},
		{checkOf("tcp", scrolls.Attrs{"address": address}), ""},
		{checkOf("tcp", scrolls.Attrs{"address": nobody}), "connection refused"},
		{checkOf("command", scrolls.Attrs{"run": []any{"true"}}), ""},
		{checkOf("command", scrolls.Attrs{"run": []any{"sh", "-c", "echo why >&2; exit 1"}}), "why"},
		{checkOf("command", scrolls.Attrs{"run": []any{"sleep", "10"}, "timeout": "50ms"}), "still running after 50ms"},
	} {
		err := RunCheck(context.Background(), w, c.check)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", CheckText(c.check), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !Mendable(err)):
			t.Errorf("%s: %v, want %q, worth another try", CheckText(c.check), err, c.want)
		}
	}
	secret := checkOf("command", scrolls.Attrs{"run": []any{"sh", "-c", "echo hunter2 >&2; exit 1"}})
	secret.Secret = []string{"run"}
	if err := RunCheck(context.Background(), w, secret); err == nil || strings.Contains(err.Error()+CheckText(secret), "hunter2") {
		t.Errorf("a secret check says: %v, %s", err, CheckText(secret))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RunCheck(ctx, w, checkOf("http", scrolls.Attrs{"url": server.URL})); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
