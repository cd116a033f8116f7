# Completion of golem for bash: golem completion bash > /etc/bash_completion.d/golem
_golem() {
	local line=${COMP_LINE:0:COMP_POINT} cur="" word i
	local -a words offers
	# Bash cuts words at colons, which keys have; so the line is cut at blanks here. What is
	# typed is never evaluated.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	cur=${words[${#words[@]} - 1]}
	mapfile -t offers < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
	# What bash takes for words before the last one is there already.
	local done=""
	[[ $cur == *[:=]* ]] && done=${cur%"${cur##*[:=]}"}
	COMPREPLY=()
	for i in "${!offers[@]}"; do
		word=${offers[i]%%$'\t'*}
		word=${word#"$done"}
		if [[ $word == *[^A-Za-z0-9_./:=@%+,-]* ]]; then
			printf -v word %q "$word"
		fi
		COMPREPLY+=("$word")
	done
}
complete -o bashdefault -o default -F _golem golem
