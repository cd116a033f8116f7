package fake

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Accounts plays useradd, usermod, userdel, groupadd, groupdel, gpasswd and getent on a
// file tree: they edit its account files, each file on its own and whole.
type Accounts struct {
	Root string
	// Step, where set, is asked before each file is written; its error ends the program
	// there, as a kill would.
	Step func(file string) error
}

const (
	passwd  = "/etc/passwd"
	shadow  = "/etc/shadow"
	group   = "/etc/group"
	gshadow = "/etc/gshadow"
	subuid  = "/etc/subuid"
	subgid  = "/etc/subgid"
)

// Boot gives the tree its account files: root, a group sudo, and a skeleton.
func (a *Accounts) Boot() error {
	err := errors.Join(os.MkdirAll(a.Root+"/etc/skel", 0o755), os.MkdirAll(a.Root+"/home", 0o755))
	for file, text := range map[string]string{
		passwd: "root:x:0:0:root:/root:/bin/bash\n", shadow: "root:*:20000:0:99999:7:::\n",
		group: "root:x:0:\nsudo:x:27:\nusers:x:100:\n", gshadow: "root:*::\nsudo:*::\nusers:*::\n",
		subuid: "", subgid: "", "/etc/skel/.profile": "# profile\n", "/etc/.pwd.lock": "",
	} {
		err = errors.Join(err, os.WriteFile(a.Root+file, []byte(text), 0o640))
	}
	return err
}

// Run answers a command. It says false for a program that is none of these.
func (a *Accounts) Run(argv ...string) (Answer, bool, error) {
	if len(argv) > 1 && argv[1] == "--help" {
		return Answer{}, true, nil
	}
	flags, words := accountArgs(argv[1:])
	var done Answer
	var err error
	switch filepath.Base(argv[0]) {
	case "getent":
		return Answer{Code: 2}, true, nil
	case "useradd":
		done, err = a.useradd(flags, words[0])
	case "usermod":
		done, err = a.usermod(flags, words[0])
	case "userdel":
		done, err = a.userdel(words[0])
	case "groupadd":
		done, err = a.groupadd(flags, words[0])
	case "groupdel":
		done, err = a.groupdel(words[0])
	case "gpasswd":
		done, err = a.gpasswd(flags["--add"], words[0])
	default:
		return Answer{}, false, nil
	}
	return done, true, err
}

// accountArgs parts options with a value from those without, and from words.
func accountArgs(args []string) (flags map[string]string, words []string) {
	flags = map[string]string{}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return flags, append(words, args[i+1:]...)
		case arg == "--system" || strings.HasPrefix(arg, "--no-"):
			flags[arg] = ""
		case strings.HasPrefix(arg, "--") && i+1 < len(args):
			i++
			flags[arg] = args[i]
		default:
			words = append(words, arg)
		}
	}
	return flags, words
}

func (a *Accounts) lines(file string) []string {
	text, err := os.ReadFile(a.Root + file)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// edit rewrites a file whole, if it is there.
func (a *Accounts) edit(file string, edit func(lines []string) []string) error {
	st, err := os.Stat(a.Root + file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && a.Step != nil {
		err = a.Step(file)
	}
	if err != nil {
		return err
	}
	text := strings.Join(append(edit(a.lines(file)), ""), "\n")
	temp := a.Root + file + "+"
	return errors.Join(os.WriteFile(temp, []byte(text), st.Mode()), os.Rename(temp, a.Root+file))
}

func add(line string) func([]string) []string {
	return func(lines []string) []string { return append(lines, line) }
}

func drop(name string) func([]string) []string {
	return func(lines []string) []string {
		return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+":") })
	}
}

// each changes every line by its fields.
func each(change func(f []string)) func([]string) []string {
	return func(lines []string) []string {
		for i, line := range lines {
			f := strings.Split(line, ":")
			change(f)
			lines[i] = strings.Join(f, ":")
		}
		return lines
	}
}

func (a *Accounts) has(file, name string) bool {
	return slices.ContainsFunc(a.lines(file), func(line string) bool { return strings.HasPrefix(line, name+":") })
}

// taken says whether a number is in use in a file.
func (a *Accounts) taken(file, id string) bool {
	return slices.ContainsFunc(a.lines(file), func(line string) bool { return strings.Split(line, ":")[2] == id })
}

func failed(format string, args ...any) (Answer, error) {
	return Answer{Err: fmt.Sprintf(format, args...), Code: 9}, nil
}

func (a *Accounts) useradd(flags map[string]string, name string) (Answer, error) {
	switch {
	case a.has(passwd, name):
		return failed("useradd: user '%s' already exists", name)
	case a.taken(passwd, flags["--uid"]):
		return failed("useradd: UID %s is not unique", flags["--uid"])
	}
	today := strconv.FormatInt(time.Now().Unix()/86400, 10)
	aging := "0:99999:7:::"
	_, system := flags["--system"]
	if system {
		aging = ":::::"
	}
	gid := flags["--gid"]
	for _, line := range a.lines(group) {
		if f := strings.Split(line, ":"); f[0] == gid {
			gid = f[2]
		}
	}
	line := strings.Join([]string{name, "x", flags["--uid"], gid, flags["--comment"], flags["--home-dir"], flags["--shell"]}, ":")
	err := a.edit(passwd, add(line))
	if err == nil {
		err = a.edit(shadow, add(name+":!:"+today+":"+aging))
	}
	for word := range strings.SplitSeq(flags["--groups"], ",") {
		if word != "" && err == nil {
			_, err = a.gpasswd(name, word)
		}
	}
	if err == nil && !system {
		err = a.edit(subuid, add(name+":100000:65536"))
		if err == nil {
			err = a.edit(subgid, add(name+":100000:65536"))
		}
	}
	return Answer{}, err
}

func (a *Accounts) usermod(flags map[string]string, name string) (Answer, error) {
	if !a.has(passwd, name) {
		return failed("usermod: user '%s' does not exist", name)
	}
	return Answer{}, a.edit(passwd, each(func(f []string) {
		if f[0] != name {
			return
		}
		for flag, i := range map[string]int{"--comment": 4, "--shell": 6} {
			if value, ok := flags[flag]; ok {
				f[i] = value
			}
		}
	}))
}

// leave takes a name out of the lists of members, in one file.
func leave(name string) func([]string) []string {
	return each(func(f []string) {
		list := strings.Split(f[3], ",")
		f[3] = strings.Join(slices.DeleteFunc(list, func(m string) bool { return m == name }), ",")
	})
}

func (a *Accounts) userdel(name string) (Answer, error) {
	if !a.has(passwd, name) {
		return Answer{Err: "userdel: user '" + name + "' does not exist", Code: 6}, nil
	}
	err := a.edit(passwd, drop(name))
	for _, file := range []string{shadow, subuid, subgid} {
		if err == nil {
			err = a.edit(file, drop(name))
		}
	}
	for _, file := range []string{group, gshadow} {
		if err == nil {
			err = a.edit(file, leave(name))
		}
		if err == nil && slices.ContainsFunc(a.lines(file), func(line string) bool {
			f := strings.Split(line, ":")
			return f[0] == name && f[3] == ""
		}) {
			err = a.edit(file, drop(name))
		}
	}
	return Answer{}, err
}

func (a *Accounts) groupadd(flags map[string]string, name string) (Answer, error) {
	switch {
	case a.has(group, name):
		return failed("groupadd: group '%s' already exists", name)
	case a.taken(group, flags["--gid"]):
		return failed("groupadd: GID '%s' already exists", flags["--gid"])
	}
	err := a.edit(group, add(name+":x:"+flags["--gid"]+":"))
	if err == nil {
		err = a.edit(gshadow, add(name+":!::"))
	}
	return Answer{}, err
}

func (a *Accounts) groupdel(name string) (Answer, error) {
	if !a.has(group, name) {
		return Answer{Err: "groupdel: group '" + name + "' does not exist", Code: 6}, nil
	}
	err := a.edit(group, drop(name))
	if err == nil {
		err = a.edit(gshadow, drop(name))
	}
	return Answer{}, err
}

func (a *Accounts) gpasswd(user, name string) (Answer, error) {
	if !a.has(group, name) {
		return failed("gpasswd: group '%s' does not exist", name)
	}
	join := each(func(f []string) {
		if list := strings.Split(f[3], ","); f[0] == name && !slices.Contains(list, user) {
			f[3] = strings.TrimPrefix(strings.Join(append(list, user), ","), ",")
		}
	})
	err := a.edit(group, join)
	if err == nil {
		err = a.edit(gshadow, join)
	}
	return Answer{}, err
}
