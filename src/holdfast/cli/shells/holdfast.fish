# Completion of holdfast for fish. Written by: holdfast completion fish
function __holdfast_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] --complete $words[2..] $current 2>/dev/null)
    set -l kind (string split ' ' -- $lines[1])
    switch "$kind[1]"
        case words
            test (count $lines) -gt 1; and printf '%s\n' $lines[2..]
        case files directories
            set -l option (string match -r -- '^--[^=]+=' $current)
            set -l part (string replace -r -- '^--[^=]+=' '' $current)
            test $kind[1] = files; and set -l found (__fish_complete_path "$part"); or set -l found (__fish_complete_directories "$part" '')
            for path in $found
                echo -- "$option$path"
            end
        case command
            set -l from (math $kind[2] + 2)
            set -l rest (string escape -- $words[$from..] 2>/dev/null) $current
            complete -C (string join -- ' ' $rest)
    end
end
complete -c holdfast -f -a '(__holdfast_complete)'
complete -c hold -f -a '(__holdfast_complete)'
