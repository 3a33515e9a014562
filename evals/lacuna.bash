# bash completion for lacuna: verbs and options are read from the program's own help, so that they
# cannot fall behind it.
_lacuna() {
    local current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]-} program=${COMP_WORDS[0]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        local verbs
        verbs=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z-][a-z-]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$verbs --help --version" -- "$current")
    elif [[ $current == -* ]]; then
        local options
        options=$("$program" "$verb" --help 2>/dev/null |
            sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p')
        mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$current")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}
complete -F _lacuna lacuna
