/** The themes, for the page of the settings. */
import { useEffect } from "react";
import { themes as readThemes } from "../api/operations";
import { chooseTheme, themeChoice } from "../app/theme";
import { Failure } from "../components/basics";
import { useRead } from "../components/useRead";
import { useStore } from "../feed/store";
import { oneLine } from "../model/format";
import type { ThemeDefinition } from "./definition";

export function ThemeSettings() {
  const choice = useStore(themeChoice);
  const { value, error, again } = useRead(readThemes);
  const themes = value?.themes ?? [];
  useEffect(() => {
    // The file may have changed since it was chosen.
    const chosen = themes.find((theme) => theme.name === choice && theme.definition !== null);
    if (chosen) chooseTheme(choice, chosen.definition as unknown as ThemeDefinition);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [value]);
  return (
    <>
      {error && <Failure text={error} retry={again} />}
      <div className="theme-choices" role="radiogroup" aria-label="Theme">
        <Choice name="system" label="As the system" about="Light or dark." isChosen={choice === "system"} choose={() => chooseTheme("system")} />
        {themes
          .filter((theme) => theme.error === null)
          .map((theme) => (
            <Choice
              key={theme.name}
              name={theme.name}
              label={theme.label}
              about={theme.description}
              isChosen={choice === theme.name}
              choose={() => chooseTheme(theme.name, theme.definition as unknown as ThemeDefinition | null)}
            />
          ))}
      </div>
      {themes
        .filter((theme) => theme.error !== null)
        .map((theme) => (
          <p key={theme.name} className="muted">
            {oneLine(theme.name)}.yaml is not used: {oneLine(theme.error ?? "")}
          </p>
        ))}
    </>
  );
}

interface ChoiceProps {
  name: string;
  label: string;
  about: string;
  isChosen: boolean;
  choose(): void;
}

function Choice({ name, label, about, isChosen, choose }: ChoiceProps) {
  return (
    <label className="theme-choice" data-name={name}>
      <input
        type="radio"
        name="theme"
        checked={isChosen}
        onChange={choose}
        aria-label={label}
        aria-describedby={about ? `theme-${name}` : undefined}
      />
      <span>
        {label}
        {about && (
          <span id={`theme-${name}`} className="setting-about muted">
            {about}
          </span>
        )}
      </span>
    </label>
  );
}
