# Completion of golem for fish: golem completion fish > ~/.config/fish/completions/golem.fish
function __golem_complete
    set -l words (commandline -opc)
    set -l offers ($words[1] complete -- $words[2..] (commandline -ct) 2>/dev/null)
    if test (count $offers) -gt 0
        printf '%s\n' $offers
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c golem -e
complete -c golem -f -a '(__golem_complete)'
