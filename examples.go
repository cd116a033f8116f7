package main

import (
	"strings"

	"github.com/urfave/cli/v3"
)

// examples are lines that each command's help shows, by the command; the tests run them. What
// stands behind a # says what for.
var examples = map[string][]string{
	"golem": {
		"golem plan web.hcl     # look, print what would change, change nothing",
		"golem apply web.hcl    # plan again, ask for \"yes\", do it",
		"golem destroy web.hcl  # give back what was there",
	},
	"golem plan": {
		"golem plan web.hcl",
		"golem plan --target nginx --exclude 'link:/**' web.hcl",
		"golem plan --out web.plan web.hcl && golem apply web.plan",
		"golem plan --drift --detailed-exitcode web.hcl || echo it moved",
	},
	"golem apply": {
		"golem apply web.hcl",
		"golem apply --target nginx web.hcl         # a leaf, a key, or a pattern",
		"golem apply web.plan                       # of golem plan --out web.plan",
		"golem apply --auto-approve --quiet web.hcl # from cron",
		"golem apply --confirm-within 5m web.hcl    # taken back unless confirmed",
	},
	"golem destroy": {
		"golem destroy web.hcl",
		"golem destroy --target file:/etc/motd web.hcl",
		"golem destroy --name web    # needs no readable scroll",
	},
	"golem rollback": {
		"golem rollback              # to the settled revision before this one",
		"golem rollback --to web@1",
	},
	"golem recover": {
		"golem recover",
		"golem recover --unconfirmed",
	},
	"golem confirm": {
		"golem apply --confirm-within 5m web.hcl && golem confirm",
	},
	"golem adopt": {
		"golem adopt --name web file /etc/issue >> web.hcl",
		"golem adopt --print-only file /etc/issue",
		"golem adopt --scan > host.hcl",
	},
	"golem history": {
		"golem history --name web",
	},
	"golem show": {
		"golem show",
		"golem show web@1 web@2",
		"golem show web.plan",
	},
	"golem state": {
		"golem state list",
		"golem state show file:/etc/motd",
	},
	"golem state list": {
		"golem state list --name web",
	},
	"golem state show": {
		"golem state show file:/etc/motd",
	},
	"golem state forget": {
		"golem state forget file:/etc/motd",
	},
	"golem state check": {
		"golem state check",
	},
	"golem state rename": {
		"golem state rename web web-host",
	},
	"golem state move": {
		"golem state move file:/etc/motd base",
	},
	"golem state rebind": {
		"golem state rebind",
	},
	"golem state export": {
		"golem state export > journal.json",
	},
	"golem state prune": {
		"golem state prune --keep 90d",
	},
	"golem kept": {
		"golem kept list",
		"golem kept show --diff 1",
	},
	"golem kept list": {
		"golem kept list",
	},
	"golem kept show": {
		"golem kept show 1 > motd.by-hand",
		"golem kept show --diff 1",
	},
	"golem kept restore": {
		"golem kept restore --to /root/motd.by-hand 1",
	},
	"golem validate": {
		"golem validate web.hcl",
		"golem validate --json web.hcl    # for an editor or a job",
	},
	"golem fmt": {
		"golem fmt                # every .hcl file here",
		"golem fmt --check --diff web.hcl",
		"golem fmt - < web.hcl",
	},
	"golem explain": {
		"golem explain",
		"golem explain line",
	},
	"golem console": {
		"echo 'upper(host.hostname)' | golem console",
		"golem console web.hcl < expressions",
	},
	"golem graph": {
		"golem graph web.hcl > plan.mmd",
		"golem graph --format dot web.hcl > plan.dot    # dot -Tsvg plan.dot",
	},
	"golem completion": {
		"golem completion bash > /etc/bash_completion.d/golem",
		"golem completion zsh > /usr/local/share/zsh/site-functions/_golem",
		"golem completion fish > ~/.config/fish/completions/golem.fish",
	},
	"golem version": {
		"golem version",
	},
}

// shownExamples is how the templates of help show them.
const shownExamples = "{{with .Metadata.examples}}\n\nEXAMPLES:{{range .}}\n   {{.}}{{end}}{{end}}"

func init() {
	before := func(template, section string) string {
		return strings.Replace(template, "{{if "+section, shownExamples+"{{if "+section, 1)
	}
	cli.RootCommandHelpTemplate = before(cli.RootCommandHelpTemplate, ".VisibleCommands}}\n\nCOMMANDS")
	cli.SubcommandHelpTemplate = before(cli.SubcommandHelpTemplate, ".VisibleCommands}}\n\nCOMMANDS")
	cli.CommandHelpTemplate = before(cli.CommandHelpTemplate, ".VisibleFlagCategories}}")
}

// exemplify gives a command, and all beneath it, its examples.
func exemplify(c *cli.Command, name string) {
	if lines := examples[name]; lines != nil {
		c.Metadata = map[string]any{"examples": lines}
	}
	for _, sub := range c.Commands {
		exemplify(sub, name+" "+sub.Name)
	}
}
