import { Failure, Loading } from "../components/basics";
import { useStore } from "../feed/store";
import { components, plugins } from "./registry";

/** The page that a plugin has registered. */
export function PluginPage({ name }: { name: string }) {
  const Registered = useStore(components).get(name);
  const found = useStore(plugins).find((one) => one.plugin.name === name);
  if (Registered) return <Registered />;
  if (found?.state === "failed") return <Failure text={`The plugin ${name} failed. ${found.problem ?? ""}`} />;
  return <Loading what={found?.plugin.label ?? name} />;
}
