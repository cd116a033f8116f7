package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"golem/scrolls"
)

// Checks are the kinds of checks there are. They say when a leaf is well.
var Checks = []scrolls.Kind{httpCheck, tcpCheck, commandCheck, unitCheck}

var timeoutAttr = scrolls.Attr{Name: "timeout", Type: cty.String, Default: "`10s`", Doc: "How long one try may take."}

var httpCheck = scrolls.Kind{
	Name: "http", Version: 1, Doc: "A web server answers.",
	Attrs: []scrolls.Attr{
		{Name: "url", Type: cty.String, Required: true, Doc: "What to ask for: an http or https URL."},
		{Name: "status", Type: cty.Number, Default: "`200`", Doc: "The status that the answer must have. A redirect is followed, unless its own status is asked for."},
		{Name: "contains", Type: cty.String, Doc: "A text that must be in the answer."},
		timeoutAttr,
	},
	Identity: func(a scrolls.Attrs) []string { return []string{shownURL(a)} },
	Check: func(a scrolls.Attrs) []scrolls.Problem {
		problems := checkDuration(a, "timeout")
		u, err := url.Parse(str(a, "url"))
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			problems = append(problems, scrolls.Problem{Attr: "url", Summary: "Not a URL", Detail: fmt.Sprintf("%q is not an http or https URL, like \"http://127.0.0.1:8080/\".", shownURL(a))})
		case u.Port() != "" && !isPort(u.Port()):
			problems = append(problems, scrolls.Problem{Attr: "url", Summary: "Not a port", Detail: notAPort(u.Port())})
		}
		if n := wholeNumber(a, "status", 200); n < 100 || n > 599 {
			problems = append(problems, scrolls.Problem{Attr: "status", Summary: "Not a status", Detail: "A status of HTTP is a whole number from 100 to 599."})
		}
		return problems
	},
}

var tcpCheck = scrolls.Kind{
	Name: "tcp", Version: 1, Doc: "Something accepts connections.",
	Attrs: []scrolls.Attr{
		{Name: "address", Type: cty.String, Required: true, Doc: "Host and port, like `127.0.0.1:22`."},
		timeoutAttr,
	},
	Identity: func(a scrolls.Attrs) []string { return []string{str(a, "address")} },
	Check: func(a scrolls.Attrs) []scrolls.Problem {
		problems := checkDuration(a, "timeout")
		switch host, port, err := net.SplitHostPort(str(a, "address")); {
		case err != nil || host == "" || port == "":
			problems = append(problems, scrolls.Problem{Attr: "address", Summary: "Not an address", Detail: fmt.Sprintf("%q is not a host and a port, like \"127.0.0.1:22\".", str(a, "address"))})
		case !isPort(port) && !serviceName.MatchString(port):
			problems = append(problems, scrolls.Problem{Attr: "address", Summary: "Not a port", Detail: notAPort(port)})
		}
		return problems
	},
}

var commandCheck = scrolls.Kind{
	Name: "command", Version: 1, Doc: "A command ends with status 0.",
	Attrs: []scrolls.Attr{
		{Name: "run", Type: cty.List(cty.String), Required: true, Hint: `Write each word on its own: ["nginx", "-t"].`, Doc: "The command and its arguments; no shell."},
		timeoutAttr,
	},
	Identity: func(a scrolls.Attrs) []string { return words(a, "run") },
	Check: func(a scrolls.Attrs) []scrolls.Problem {
		problems := checkDuration(a, "timeout")
		if run := words(a, "run"); len(run) == 0 || run[0] == "" {
			problems = append(problems, scrolls.Problem{Attr: "run", Summary: "Command is empty", Detail: "The first word is the program."})
		}
		return problems
	},
}

var unitCheck = scrolls.Kind{
	Name: "unit", Version: 1, Doc: "A unit is up, and stays up for a while.",
	Attrs: []scrolls.Attr{
		{Name: "unit", Type: cty.String, Required: true, Doc: "The unit's name; without a suffix, a service."},
		{Name: "for", Type: cty.String, Default: "`5s`", Doc: "How long it must stay up."},
	},
	Identity: func(a scrolls.Attrs) []string { return []string{unitName(str(a, "unit"))} },
	Check: func(a scrolls.Attrs) []scrolls.Problem {
		return append(checkDuration(a, "for"), checkUnitName("unit", str(a, "unit"))...)
	},
}

// serviceName is a port by its name, as /etc/services has it.
var serviceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

func notAPort(text string) string {
	return fmt.Sprintf("%q is not a port: a whole number from 1 to 65535.", text)
}

// checkDuration says what is wrong with a length of time.
func checkDuration(a scrolls.Attrs, attr string) []scrolls.Problem {
	text, ok := a[attr].(string)
	if !ok {
		return nil
	}
	if d, err := time.ParseDuration(text); err != nil || d < shortest || d > time.Hour {
		return []scrolls.Problem{{Attr: attr, Summary: "Not a length of time", Detail: fmt.Sprintf("%q is not a length of time from 1ms to an hour, like \"10s\" or \"1m30s\".", text)}}
	}
	return nil
}

const (
	defaultCheckTime = 10 * time.Second
	shortest         = time.Millisecond // of a length of time that is worth writing
)

// shownURL is the URL of a check as it is told and named: without the password in it.
func shownURL(a scrolls.Attrs) string {
	text := str(a, "url")
	u, err := url.Parse(text)
	if err != nil {
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			return "…" + text[at:]
		}
		return text
	}
	if _, ok := u.User.Password(); !ok {
		return text
	}
	return strings.Replace(u.String(), u.User.String()+"@", url.User(u.User.Username()).String()+":***@", 1)
}

// CheckText tells a check to a person.
func CheckText(g *scrolls.Glyph) string {
	if len(g.Secret) > 0 {
		return g.Kind + " (secret)"
	}
	a := g.Attrs
	switch g.Kind {
	case "http":
		text := fmt.Sprintf("%s answers with status %d", shownURL(a), wholeNumber(a, "status", 200))
		if part := str(a, "contains"); part != "" {
			text += fmt.Sprintf(" and %q", part)
		}
		return text
	case "tcp":
		return str(a, "address") + " accepts connections"
	case "command":
		return commandText(words(a, "run")) + " succeeds"
	}
	return fmt.Sprintf("%s stays up for %s", unitName(str(a, "unit")), duration(a, "for", 5*time.Second))
}

// Checkable says whether a check can be made: on a file tree, only a command can.
func Checkable(h *Host, g *scrolls.Glyph) bool { return h.Live() || g.Kind == "command" }

// RunCheck tries a check once. Any failure may pass, and is worth another try.
func RunCheck(ctx context.Context, w *World, g *scrolls.Glyph) error {
	err := runCheck(ctx, w, g)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if len(g.Secret) > 0 {
		err = errors.New("it does not hold (why is secret)")
	}
	return &CheckError{g.Kind, err}
}

// A CheckError is a check that does not hold.
type CheckError struct {
	Kind string
	Err  error
}

func (e *CheckError) Error() string { return fmt.Sprintf("check %s: %s", e.Kind, e.Err) }
func (e *CheckError) Unwrap() error { return e.Err }

func runCheck(ctx context.Context, w *World, g *scrolls.Glyph) error {
	most := defaultCheckTime
	if g.Kind == "command" && w.Timeout > 0 {
		most = min(most, w.Timeout) // the policy's, for any external command
	}
	timeout := duration(g.Attrs, "timeout", most)
	switch g.Kind {
	case "http":
		return checkHTTP(ctx, g.Attrs, timeout)
	case "tcp":
		d := net.Dialer{Timeout: timeout}
		conn, err := d.DialContext(ctx, "tcp", str(g.Attrs, "address"))
		if err != nil {
			return err
		}
		return conn.Close()
	case "command":
		_, err := w.Host.Do(ctx, Command{Argv: words(g.Attrs, "run"), Talk: true, Secret: len(g.Secret) > 0, Timeout: timeout})
		return err
	}
	return checkUnit(ctx, w, g.Attrs)
}

// checkHTTP asks a server, and says what of its answer is not as the check has it.
func checkHTTP(ctx context.Context, a scrolls.Attrs, timeout time.Duration) error {
	want := wholeNumber(a, "status", 200)
	client := &http.Client{Timeout: timeout}
	if want >= 300 && want < 400 {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, str(a, "url"), nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		return fmt.Errorf("%s answers %s, not %d", shownURL(a), answer.Status, want)
	}
	part := str(a, "contains")
	if part == "" {
		return nil
	}
	const most = 10 << 20
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), part) {
		return fmt.Errorf("%s answers without %q", shownURL(a), part)
	}
	return nil
}

func checkUnit(ctx context.Context, w *World, a scrolls.Attrs) error {
	id := unitName(str(a, "unit"))
	restarts := -1
	for waited, most := time.Duration(0), duration(a, "for", 5*time.Second); ; waited += lookEvery {
		w.forgetUnits()
		u, err := w.unit(ctx, id)
		if err != nil {
			return err
		}
		if restarts < 0 {
			restarts = u.Restarts
		}
		switch {
		case !u.known():
			return fmt.Errorf("systemd knows no unit %s", id)
		case fell(u, restarts) != "":
			return w.broken(ctx, "watch", u.ID, errors.New(fell(u, restarts)))
		case waited >= most:
			return nil
		}
		if err := w.Host.Wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}
