"""Operations on what extends the dashboard: plugins and themes."""

from __future__ import annotations

from holdfast.ops.declare import Operation, Record, Scope, Traits, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ops.kinds import Flag, Text
    from holdfast.ops.records import PluginFields, ThemeFields


class Plugins(Operation):
    """List the plugins of the dashboard, as they are on disk now."""

    class Reply(Record):
        plugins: list[PluginFields] = field()

    traits = Traits(reads=True, route="GET /dashboard/plugins", http_name="listPlugins", returns="plugins")


class SetPlugin(Operation):
    """Enable or disable a plugin of the dashboard."""

    plugin: Text = field(longest=64, required_text=True, help="The name of the plugin.")
    enabled: Flag = field(help="Whether its code runs and its files are served.")

    class Reply(Record):
        plugin: PluginFields = field()

    traits = Traits(
        scope=Scope.OPERATOR,
        route="POST /dashboard/plugins/{plugin}",
        http_name="setPlugin",
        positional=("plugin", "enabled"),
    )


class Themes(Operation):
    """List the themes of the dashboard, as they are on disk now."""

    class Reply(Record):
        themes: list[ThemeFields] = field()

    traits = Traits(reads=True, route="GET /dashboard/themes", http_name="listThemes", returns="themes")
