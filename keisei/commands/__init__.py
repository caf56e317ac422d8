"""The subcommands of ``keisei``: thin functions over the library, registered in `keisei.cli`."""
