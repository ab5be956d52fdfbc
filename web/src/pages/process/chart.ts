/** A small line chart over time; this module is loaded when the first chart is shown. */
import uPlot from "uplot";
import { clock } from "../../model/format";
import "uplot/dist/uPlot.min.css";

const HEIGHT = 160;

export interface Chart {
  set(times: number[], values: (number | null)[]): void;
  dispose(): void;
}

export function createChart(element: HTMLElement, label: string, format: (value: number) => string): Chart {
  const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = {
    stroke: () => color("--color-muted-foreground"),
    grid: { stroke: () => color("--color-border"), width: 1 },
    ticks: { show: false },
    font: `12px ${color("--font-sans") || "sans-serif"}`,
  };
  const plot = new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { points: { size: 6 } },
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.15, 1)] } },
      axes: [{ ...axis, size: 28, space: 90, values: (_, values) => values.map((value) => clock(value)) }, { ...axis, size: 72, values: (_, values) => values.map((value) => format(value)) }],
      series: [
        {},
        {
          label,
          stroke: () => color("--color-primary"),
          fill: () => color("--color-accent"),
          width: 1.5,
          points: { show: false },
        },
      ],
    },
    [[], []],
    element,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
  observer.observe(element);
  return {
    set: (times, values) => plot.setData([times, values]),
    dispose: () => {
      observer.disconnect();
      plot.destroy();
    },
  };
}
