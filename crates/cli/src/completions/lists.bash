
# Completes what clap's function does not: values after '=', and lists, which go on after a comma.
_kontig_lists() {
    local list="" last="$2" before="$3" option="" i
    [[ $last == "=" ]] && last=""
    if [[ $last == *,* ]]; then
        list="${last%,*},"
        last="${last##*,}"
    fi
    for ((i = COMP_CWORD; i > 0; i--)); do
        if [[ ${COMP_WORDS[i]} == --* ]]; then
            option="${COMP_WORDS[i]}"
            break
        fi
    done
    local name="${COMP_WORDS[COMP_CWORD - 2]}"
    [[ ${COMP_WORDS[COMP_CWORD]} == "=" ]] && name="${COMP_WORDS[COMP_CWORD - 1]}"
    if [[ $option == --with ]]; then
        # The workload itself says what it has, a file of one's own, too.
        if [[ $before == "--with" || -n $list ]]; then
            local keys
            keys=$("$1" show workload "${COMP_WORDS[2]}" 2>/dev/null |
                sed -n '/^parameter /,/^$/ { /^parameter /d; s/ .*//; /./p; s/.*\.//p; }' | sort -u)
            COMPREPLY=($(compgen -P "$list" -S "=" -W "$keys" -- "$last"))
            compopt -o nospace 2>/dev/null
        else
            COMPREPLY=()
        fi
        return 0
    fi
    if [[ $option == --set && $before != "--set" ]]; then
        COMPREPLY=($(compgen -P "$list" -W "$(_kontig_words "$name")" -- "$last"))
        return 0
    fi
    [[ $before == "=" ]] && before="$option"
    _kontig "$1" "$last" "$before"
    COMPREPLY=("${COMPREPLY[@]/#/$list}")
    if [[ $option == --set ]]; then
        COMPREPLY=("${COMPREPLY[@]/%/=}")
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

complete -F _kontig_lists -o bashdefault -o default kontig
