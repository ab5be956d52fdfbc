// A plugin of slots alone: gauges in the sidebar, the clock and the rate of events in the footer.
(function () {
  "use strict";
  const SDK = window.__HOLDFAST_PLUGIN_SDK__;
  const h = SDK.React.createElement;
  const { useState, useEffect } = SDK.hooks;
  const MOST = 60;

  function size(bytes) {
    return bytes >= 1e9 ? (bytes / 1e9).toFixed(2) + " GB" : (bytes / 1e6).toFixed(0) + " MB";
  }

  function useTelemetry() {
    const [found, setFound] = useState({ cpu: [], memory: [], running: 0 });
    useEffect(function () {
      let isOver = false;
      function read() {
        if (document.hidden) return;
        SDK.api.top(1, 1).then(
          function (now) {
            if (isOver) return;
            setFound(function (before) {
              return {
                cpu: before.cpu.concat(now.cpu_percent || 0).slice(-MOST),
                memory: before.memory.concat(now.rss_bytes || 0).slice(-MOST),
                running: now.total,
              };
            });
          },
          function () {}, // the page says itself that the daemon does not answer
        );
      }
      read();
      const timer = setInterval(read, 2000);
      return function () {
        isOver = true;
        clearInterval(timer);
      };
    }, []);
    return found;
  }

  function Curve(props) {
    const most = Math.max.apply(null, props.values.concat(props.least));
    const points = props.values.map(function (value, index) {
      return (100 - (props.values.length - 1 - index) * (100 / (MOST - 1))).toFixed(1) + "," + (27 - (25 * value) / most).toFixed(1);
    });
    return h("svg", { viewBox: "0 0 100 28", preserveAspectRatio: "none", "aria-hidden": true }, h("polyline", { points: points.join(" ") }));
  }

  function Gauge(props) {
    return h("div", { className: "card cockpit-gauge" }, h("dt", null, props.label), h("dd", null, props.value), props.children);
  }

  function Telemetry() {
    const { cpu, memory, running } = useTelemetry();
    return h(
      "dl",
      { className: "cockpit", "aria-label": "Telemetry" },
      h(Gauge, { label: "Running", value: String(running) }),
      h(Gauge, { label: "CPU", value: (cpu.at(-1) || 0).toFixed(1) + " %" }, h(Curve, { values: cpu, least: 10 })),
      h(Gauge, { label: "Memory", value: size(memory.at(-1) || 0) }, h(Curve, { values: memory, least: 1e7 })),
    );
  }

  function Rate() {
    const [rate, setRate] = useState(0);
    useEffect(function () {
      let seen = 0;
      const stop = SDK.events.subscribe("**", function () {
        seen += 1;
      });
      const timer = setInterval(function () {
        setRate(seen / 2);
        seen = 0;
      }, 2000);
      return function () {
        stop();
        clearInterval(timer);
      };
    }, []);
    return h("span", null, rate.toFixed(1) + " events/s");
  }

  function Clock() {
    const [now, setNow] = useState(new Date());
    useEffect(function () {
      const timer = setInterval(function () {
        setNow(new Date());
      }, 1000);
      return function () {
        clearInterval(timer);
      };
    }, []);
    return h("time", null, now.toISOString().slice(11, 19) + " UTC");
  }

  const registry = window.__HOLDFAST_PLUGINS__;
  registry.registerSlot("cockpit", "sidebar", Telemetry);
  registry.registerSlot("cockpit", "footer-left", Rate);
  registry.registerSlot("cockpit", "footer-right", Clock);
})();
