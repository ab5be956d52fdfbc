# Read by bash (BASH_ENV) before a command of the terminal tool: tells holdfast where the command goes with cd.
# The command itself is not changed, and its own children know nothing of this.
__holdfast_cwd=${HOLDFAST_CWD_FILE-}
unset BASH_ENV HOLDFAST_CWD_FILE
if [[ -n ${HOLDFAST_BASH_ENV-} ]]; then
    export BASH_ENV=$HOLDFAST_BASH_ENV
    unset HOLDFAST_BASH_ENV
fi

if [[ -n $__holdfast_cwd ]] && ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
    # $1 is cd, pushd or popd. An error reads as if bash itself had told it, and nothing of this is traced.
    __holdfast_go() {
        local how=$1 said status
        shift
        if builtin "$how" "$@" 2>/dev/null; then
            # A subshell goes where it likes: the command does not follow it.
            [[ $BASHPID == "$$" && -e $__holdfast_cwd ]] && printf %s "$PWD" 2>/dev/null >|"$__holdfast_cwd"
            return 0
        fi
        said=$(builtin "$how" "$@" 2>&1 >/dev/null)
        status=$?
        printf '%s\n' "${BASH_SOURCE[2]:-$0}: line ${BASH_LINENO[1]}: $how: ${said#*: "$how": }" >&2
        return "$status"
    }
    cd() { { local -; set +xveE; } 2>/dev/null; __holdfast_go cd "$@"; }
    pushd() { { local -; set +xveE; } 2>/dev/null; __holdfast_go pushd "$@"; }
    popd() { { local -; set +xveE; } 2>/dev/null; __holdfast_go popd "$@"; }
fi

if [[ -n ${BASH_ENV-} ]]; then
    . "$BASH_ENV"
fi
