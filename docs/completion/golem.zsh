#compdef golem
# Completion of golem for zsh: golem completion zsh > a directory of $fpath, as _golem
_golem() {
	local -a offers values shown
	local offer
	offers=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	for offer in $offers; do
		values+=("${offer%%$'\t'*}")
		shown+=("${offer/$'\t'/  -- }")
	done
	if (( $#values )); then
		compadd -l -d shown -a values
	else
		_files
	fi
}
if [ "$funcstack[1]" = "_golem" ]; then
	_golem "$@"
else
	compdef _golem golem
fi
