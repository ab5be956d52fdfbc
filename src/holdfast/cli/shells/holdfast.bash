# Completion of holdfast for bash. Written by: holdfast completion bash
_holdfast() {
    local cur=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT} prefix value
    local -a words lines kind
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # bash breaks words at = and : and replaces only what is behind.
    [[ $cur == [=:] ]] && cur=""
    prefix=${words[-1]%"$cur"}
    mapfile -t lines < <("${words[0]/#\~/$HOME}" --complete "${words[@]:1}" 2>/dev/null)
    read -ra kind <<<"${lines[0]-}"
    COMPREPLY=()
    case ${kind[0]-} in
        words)
            for value in "${lines[@]:1}"; do
                value=${value%%$'\t'*}
                printf -v value %q "${value#"$prefix"}"
                COMPREPLY+=("$value")
            done
            [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
            ;;
        files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        command)
            if declare -F _command_offset > /dev/null; then
                _command_offset $((kind[1] + 1))
            elif ((${#words[@]} == kind[1] + 2)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            else
                compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            ;;
    esac
}
complete -F _holdfast holdfast hold
