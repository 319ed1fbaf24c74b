"""``python -m trueup``: the command line, where the folder of programs is not on the path."""

from trueup.cli import main

if __name__ == "__main__":
    main()
