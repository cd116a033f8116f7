package fake

import (
	"fmt"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
)

// systemctl answers systemctl: one verb, its options, its units.
func (s *Systemd) systemctl(m *memory, args []string) Answer {
	var words []string
	options := map[string]string{}
	for _, arg := range args {
		if name, value, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") {
			options[name] = value
			continue
		}
		words = append(words, arg)
	}
	if len(words) == 0 {
		return Answer{Err: "fake systemctl: no verb", Code: 1}
	}
	verb, names := words[0], words[1:]
	_, m.dontBlock = options["--no-block"]
	for _, name := range names {
		m.Calls[verb+" "+name]++
	}
	if slices.Contains(s.Deaf, verb) {
		return Answer{}
	}
	switch verb {
	case "show":
		return s.show(m, strings.Split(options["--property"], ","), names)
	case "is-enabled":
		return s.isEnabled(names)
	case "daemon-reload":
		m.Calls["daemon-reload"]++
		s.reread(m)
		return Answer{}
	case "enable", "disable", "mask", "unmask":
		_, runtime := options["--runtime"]
		return s.files(m, verb, names, runtime)
	}
	for _, name := range names {
		if a := s.tell(m, verb, name); a.Code != 0 {
			return a
		}
	}
	return Answer{}
}

// tell tells one unit something.
func (s *Systemd) tell(m *memory, verb, name string) Answer {
	p := s.find(name)
	l := m.Lives[p.id]
	missing := Answer{Err: fmt.Sprintf("Failed to %s %s: Unit %s not found.", verb, name, name), Code: 5}
	switch verb {
	case "start":
		return s.start(m, p.id)
	case "stop":
		if l == nil && !p.known() {
			return missing
		}
		s.stop(m, p.id)
		return Answer{}
	case "restart":
		s.stop(m, p.id)
		return s.start(m, p.id)
	case "reload":
		switch {
		case !l.up():
			return Answer{Err: p.id + " is not active, cannot reload.", Code: 1}
		case parse(l.Text).one("Service", "ExecReload") == "":
			return Answer{Err: "Failed to reload " + p.id + ": Job type reload is not applicable for unit " + p.id + ".", Code: 1}
		}
		return Answer{}
	case "reset-failed":
		if l == nil {
			return Answer{Err: fmt.Sprintf("Failed to reset failed state of unit %s: Unit %s not loaded.", name, name), Code: 1}
		}
		if l.Active == "failed" {
			delete(m.Lives, p.id)
		}
		return Answer{}
	}
	return Answer{Err: "fake systemctl: unknown verb " + verb, Code: 1}
}

// start starts a unit, and what it pulls in; what it conflicts with stops.
func (s *Systemd) start(m *memory, name string) Answer {
	p := s.find(name)
	switch {
	case m.Lives[name].up():
		return Answer{}
	case p.masked != "":
		return Answer{Err: "Failed to start " + name + ": Unit " + name + " is masked.", Code: 1}
	case p.path == "" && m.Lives[name] == nil:
		return Answer{Err: "Failed to start " + name + ": Unit " + name + " not found.", Code: 5}
	}
	l := m.Lives[name]
	if l == nil {
		l = &life{Text: p.text}
		m.Lives[name] = l
	}
	d := parse(l.Text)
	failed := func(result string) Answer {
		m.log(name, "fake: cannot bind to port 80")
		m.log(name, name+": Failed with result '"+result+"'.")
		l.Active, l.Sub, l.Result, l.Code, l.Status = "failed", "failed", result, 1, 1
		return Answer{Err: "Job for " + name + " failed because the control process exited with error code.", Code: 1}
	}
	if l.Limit {
		return Answer{Err: "Job for " + name + " failed: start request repeated too quickly.", Code: 1}
	}
	if path.Ext(name) == ".socket" && len(d.list("X-Hidden", "Service")) == 0 && m.Lives[s.triggers(name)].up() {
		l.Active, l.Sub = "failed", "failed"
		return Answer{Err: "Job for " + name + " failed: Socket service " + s.triggers(name) + " already active, refusing.", Code: 1}
	}
	l.Active, l.Sub, l.Result, l.Restarts, l.Code, l.Status = "active", "running", "success", 0, 0, 0
	l.Entered = m.Now
	for _, dep := range slices.Concat(d.list("Unit", "Requires"), d.list("Unit", "BindsTo"), d.list("Unit", "Wants")) {
		if a := s.start(m, dep); a.Code != 0 && !slices.Contains(d.list("Unit", "Wants"), dep) {
			return failed("dependency")
		}
	}
	for other, o := range m.Lives {
		if o.up() && (slices.Contains(d.list("Unit", "Conflicts"), other) || slices.Contains(parse(o.Text).list("Unit", "Conflicts"), name)) {
			s.stop(m, other)
		}
	}
	if path.Ext(name) != ".service" {
		l.Sub = map[string]string{".socket": "listening", ".timer": "waiting", ".path": "waiting", ".mount": "mounted"}[path.Ext(name)]
		if l.Sub == "" {
			l.Sub = "active"
		}
		return Answer{}
	}
	return s.startService(m, name, l, d, failed)
}

func (s *Systemd) startService(m *memory, name string, l *life, d definition, failed func(string) Answer) Answer {
	exec, typ := d.one("Service", "ExecStart"), serviceType(d)
	m.Pids++
	l.PID = m.Pids
	switch {
	case strings.HasPrefix(exec, "/fake/fail") && typ != "simple":
		return failed("exit-code")
	case strings.HasPrefix(exec, "/fake/slow"):
		l.Active, l.Sub, l.Ends = "activating", "start", m.Now+3_000_000
		return Answer{}
	case strings.HasPrefix(exec, "/fake/hangs") && m.dontBlock:
		l.Active, l.Sub = "activating", "start"
		return Answer{}
	case strings.HasPrefix(exec, "/fake/hangs"):
		l.Active, l.Sub = "activating", "start"
		return Answer{Err: "Job for " + name + " timed out.", Code: 1}
	case typ == "oneshot":
		l.PID = 0
		l.Active, l.Sub = "inactive", "dead"
		if d.one("Service", "RemainAfterExit") == "yes" {
			l.Active, l.Sub = "active", "exited"
		}
		m.Calls["ran "+name]++
		return Answer{}
	}
	if after := lifetime(d); after > 0 {
		l.Ends = m.Now + after
	}
	return Answer{}
}

func serviceType(d definition) string {
	if typ := d.one("Service", "Type"); typ != "" {
		return typ
	}
	return "simple"
}

// stop stops a unit and every unit that needs it.
func (s *Systemd) stop(m *memory, name string) {
	l := m.Lives[name]
	if l == nil || l.Active == "inactive" || l.Active == "failed" {
		return
	}
	l.Active, l.Sub, l.Ends, l.PID, l.Result = "inactive", "dead", 0, 0, "success"
	if strings.HasPrefix(parse(l.Text).one("Service", "ExecStart"), "/fake/stuck") {
		l.Active, l.Sub, l.Result = "failed", "failed", "timeout"
	}
	s.withdraw(m, name)
	if l.Active == "inactive" {
		delete(m.Lives, name) // forgotten: its file is read anew when it is started
	}
}

// withdraw stops what cannot be without a unit.
func (s *Systemd) withdraw(m *memory, name string) {
	for other, o := range m.Lives {
		d := parse(o.Text)
		needs := slices.Concat(d.list("Unit", "Requires"), d.list("Unit", "BindsTo"), d.list("Unit", "PartOf"))
		if other != name && slices.Contains(needs, name) {
			s.stop(m, other)
		}
	}
}

// triggers is the unit that a socket, timer or path starts. One named under [X-Hidden] is
// started though nothing says so.
func (s *Systemd) triggers(name string) string {
	d := parse(s.find(name).text)
	for _, to := range []string{d.one("X-Hidden", "Service"), d.one("Socket", "Service"), d.one("Timer", "Unit"), d.one("Path", "Unit")} {
		if to != "" {
			return to
		}
	}
	return strings.TrimSuffix(name, path.Ext(name)) + ".service"
}

// reread is daemon-reload.
func (s *Systemd) reread(m *memory) {
	for name, l := range m.Lives {
		p := s.find(name)
		if l.Gone = !p.known(); p.path != "" {
			l.Text = p.text
		}
	}
}

// files answers the verbs that change links.
func (s *Systemd) files(m *memory, verb string, names []string, runtime bool) Answer {
	dir := "/etc/systemd/system"
	if runtime {
		dir = "/run/systemd/system"
	}
	defer s.reread(m)
	for _, name := range names {
		p := s.find(name)
		at := s.Root + dir + "/" + name
		var err error
		switch {
		case verb == "mask":
			if _, there := os.Lstat(at); there == nil {
				if target, _ := os.Readlink(at); target != "/dev/null" {
					return Answer{Err: "Failed to mask unit: File " + dir + "/" + name + " already exists.", Code: 1}
				}
				continue
			}
			err = s.link(dir+"/"+name, "/dev/null")
		case verb == "unmask":
			if p.masked == dir {
				err = os.Remove(at)
			}
		case p.masked != "" && verb == "enable":
			return Answer{Err: "Failed to enable unit: Unit file " + p.masked + "/" + name + " is masked.", Code: 1}
		case p.path == "" && verb == "enable":
			return Answer{Err: "Failed to enable unit: Unit file " + name + " does not exist.", Code: 1}
		default:
			err = s.install(p.id, dir, verb == "disable", map[string]bool{})
		}
		if err != nil {
			return Answer{Err: fmt.Sprintf("Failed to %s unit: %v", verb, err), Code: 1}
		}
	}
	return Answer{}
}

func (s *Systemd) isEnabled(names []string) Answer {
	a := Answer{Code: 1}
	for _, name := range names {
		state := s.fileState(name)
		if state == "" {
			return Answer{Out: a.Out, Err: "Failed to get unit file state for " + name + ": No such file or directory", Code: 1}
		}
		a.Out += state + "\n"
		if slices.Contains([]string{"enabled", "enabled-runtime", "static", "alias", "indirect", "generated"}, state) {
			a.Code = 0
		}
	}
	return a
}

// show answers systemctl show: a block of properties for each unit.
func (s *Systemd) show(m *memory, wanted, names []string) Answer {
	var blocks []string
	for _, name := range names {
		properties := s.properties(m, name)
		var lines []string
		for _, key := range wanted {
			if value, ok := properties[key]; ok {
				lines = append(lines, key+"="+value)
			}
		}
		sort.Strings(lines)
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	return Answer{Out: strings.Join(blocks, "\n\n") + "\n"}
}

func (s *Systemd) properties(m *memory, name string) map[string]string {
	p := s.find(name)
	l, loaded := m.Lives[p.id]
	if !loaded {
		l = &life{Text: p.text, Active: "inactive", Sub: "dead", Result: "success"}
	}
	d := parse(l.Text)
	yes := func(is bool) string { return map[bool]string{true: "yes", false: "no"}[is] }
	props := map[string]string{
		"Id": p.id, "Names": strings.Join(append([]string{p.id}, s.aliases(p.id)...), " "), "LoadState": "loaded",
		"ActiveState": l.Active, "SubState": l.Sub, "UnitFileState": s.fileState(p.id), "FragmentPath": p.path,
		"CanStart": yes(d.one("Unit", "RefuseManualStart") != "yes"), "CanStop": "yes",
		"CanReload":         yes(d.one("Service", "ExecReload") != ""),
		"NeedDaemonReload":  yes(loaded && !l.Gone && p.masked == "" && l.Text != p.text),
		"RefuseManualStart": yes(d.one("Unit", "RefuseManualStart") == "yes"), "RefuseManualStop": "no", "Transient": "no",
		"Requires": strings.Join(d.list("Unit", "Requires"), " "), "Wants": strings.Join(d.list("Unit", "Wants"), " "),
		"BindsTo":                       strings.Join(d.list("Unit", "BindsTo"), " "),
		"Conflicts":                     strings.Join(append(d.list("Unit", "Conflicts"), "shutdown.target"), " "),
		"ActiveEnterTimestampMonotonic": fmt.Sprint(l.Entered),
	}
	switch {
	case p.masked != "" && !loaded:
		props["LoadState"], props["FragmentPath"] = "masked", p.masked+"/"+p.id
	case p.masked != "":
		props["LoadState"] = "masked"
	case p.path == "" && !loaded, l.Gone:
		props["LoadState"] = "not-found"
	}
	if ext := path.Ext(p.id); ext == ".socket" || ext == ".timer" || ext == ".path" {
		props["Triggers"] = s.triggers(p.id)
	}
	if path.Ext(p.id) == ".service" {
		props["Type"], props["Result"] = serviceType(d), l.Result
		props["RemainAfterExit"] = yes(d.one("Service", "RemainAfterExit") == "yes")
		props["ExecMainCode"], props["ExecMainStatus"] = fmt.Sprint(l.Code), fmt.Sprint(l.Status)
		props["NRestarts"], props["MainPID"] = fmt.Sprint(l.Restarts), fmt.Sprint(l.PID)
	}
	by := map[string][]string{}
	for other, o := range m.Lives {
		od := parse(o.Text)
		for section, property := range map[string]string{"Requires": "RequiredBy", "BindsTo": "BoundBy", "PartOf": "ConsistsOf", "Conflicts": "ConflictedBy", "Wants": "WantedBy"} {
			if slices.Contains(od.list("Unit", section), p.id) {
				by[property] = append(by[property], other)
			}
		}
		if ext := path.Ext(other); (ext == ".socket" || ext == ".timer" || ext == ".path") && len(od.list("X-Hidden", "Service")) == 0 && s.triggers(other) == p.id {
			by["TriggeredBy"] = append(by["TriggeredBy"], other)
		}
	}
	for _, property := range []string{"RequiredBy", "BoundBy", "ConsistsOf", "ConflictedBy", "TriggeredBy", "WantedBy"} {
		sort.Strings(by[property])
		props[property] = strings.Join(by[property], " ")
	}
	return props
}

// aliases are the other names that links give a unit.
func (s *Systemd) aliases(id string) []string {
	var names []string
	for _, dir := range dirs {
		for at, target := range s.links(dir) {
			if path.Dir(at) == "." && at != id && path.Base(target) == id && !slices.Contains(names, at) {
				names = append(names, at)
			}
		}
	}
	sort.Strings(names)
	return names
}
