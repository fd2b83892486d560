"""``ftlab completion``."""

from __future__ import annotations

import click

from ftlab.outputs import write_stdout

# Bash splits words at = and :, so its completions begin after these characters.
_BASH = """\
_ftlab_completion() {
    local line=${COMP_LINE:0:COMP_POINT} word prefix type value
    local -a words
    read -ra words <<< "$line"
    case $line in *[[:space:]]) words+=("") ;; esac
    word=${words[-1]}
    prefix=${word%"${COMP_WORDS[COMP_CWORD]#=}"}
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("${value#"$prefix"}")
                case $value in *=) compopt -o nospace ;; esac
                ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD=$((${#words[@]} - 1)) _FTLAB_COMPLETE=bash_complete "${words[0]}")
}
complete -F _ftlab_completion ftlab
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what a shell needs to complete commands, options, presets, keys and their values.

    \b
    bash   eval "$(ftlab completion bash)"          in ~/.bashrc
    zsh    eval "$(ftlab completion zsh)"           in ~/.zshrc
    fish   ftlab completion fish | source           in ~/.config/fish/config.fish
    """
    if shell == "bash":
        write_stdout(_BASH)
        return
    from click.shell_completion import get_completion_class

    from ftlab.cli import cli

    found = get_completion_class(shell)
    assert found is not None, "click knows the shells of the choice"
    write_stdout(found(cli, {}, "ftlab", "_FTLAB_COMPLETE").source().strip() + "\n")
