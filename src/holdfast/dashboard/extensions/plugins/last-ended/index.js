// An example: it fills a slot of a page, and follows the events of the daemon.
(function () {
  "use strict";
  const SDK = window.__HOLDFAST_PLUGIN_SDK__;
  const h = SDK.React.createElement;
  const { useState, useEffect } = SDK.hooks;
  const { Card, CardHeader, CardTitle, CardContent, Badge } = SDK.components;

  function LastEnded() {
    const [ended, setEnded] = useState([]);
    useEffect(function () {
      return SDK.events.subscribe("process.ended", function (event) {
        setEnded(function (before) {
          return [event].concat(before).slice(0, 5);
        });
      });
    }, []);
    if (!ended.length) return null;
    return h(
      Card,
      { id: "last-ended" },
      h(CardHeader, null, h(CardTitle, null, "Ended since you opened this page")),
      h(
        CardContent,
        null,
        ended.map(function (event) {
          const end = event.exit_code === 0 ? "exit 0" : event.exit_code === null ? event.reason : "exit " + event.exit_code;
          return h("div", { key: event.seq }, h(Badge, null, end), " ", event.name || event.id, " ", SDK.utils.timeAgo(event.ts));
        }),
      ),
    );
  }

  window.__HOLDFAST_PLUGINS__.registerSlot("last-ended", "processes:bottom", LastEnded);
})();
