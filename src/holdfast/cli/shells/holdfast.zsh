#compdef holdfast hold
# Completion of holdfast for zsh. Written by: holdfast completion zsh
_holdfast() {
    local -a given lines kind values displays
    local line
    given=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    lines=("${(@f)$(${(Q)~words[1]} --complete "${given[@]}" 2>/dev/null)}")
    kind=("${(@s: :)lines[1]}")
    shift lines
    case $kind[1] in
        words)
            for line in "${lines[@]}"; do
                values+=("${line%%$'\t'*}")
                [[ ${line#*$'\t'} ]] && displays+=("${line/$'\t'/  -- }") || displays+=("${line%%$'\t'*}")
            done
            local -a end
            [[ $values[1] == *= ]] && end=(-S '')
            (( $#values )) && compadd "${end[@]}" -l -d displays -a values
            ;;
        files) compset -P '--[^=]#='; _files ;;
        directories) compset -P '--[^=]#='; _files -/ ;;
        command)
            shift $((kind[2] + 1)) words
            ((CURRENT -= kind[2] + 1))
            _normal
            ;;
    esac
}
if [[ ${funcstack[1]} == _holdfast ]]; then
    _holdfast "$@"
else
    compdef _holdfast holdfast hold
fi
