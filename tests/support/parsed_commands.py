"""Command lines of files and docs, read as the command line itself reads them; nothing is run."""


def parse_command(words):
    """The parameters that a command line gives; `hardlook run BENCHMARK` has those of the benchmark."""
    from typer.main import get_command

    from hardlook.cli.app import load_command
    from hardlook.cli.help_pages import App
    from hardlook.cli.run import build_command
    from hardlook.harness.registry import find_benchmark

    program, verb, *rest = words
    assert program == "hardlook"
    if verb != "run":
        return load_command(verb).make_context(verb, rest).params
    app = App(pretty_exceptions_enable=False)
    app.command()(build_command(rest[0], find_benchmark(rest[0])))
    return get_command(app).make_context("run", rest[1:]).params
