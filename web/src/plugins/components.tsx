/** Components for plugins, by the names and properties that plugins of hermes-agent use. */
import { useState, type ComponentProps, type ReactNode } from "react";
import { Dialog as Modal } from "../components/basics";
import { Slot, useFilled } from "../components/Slot";

export const cn = (...words: unknown[]): string => words.flat().filter((word) => typeof word === "string" && word).join(" ");

type Div = ComponentProps<"div">;

export const Card = ({ className, ...rest }: Div) => <div className={cn("card plugin-card", className)} {...rest} />;
export const CardHeader = ({ className, ...rest }: Div) => <div className={cn("plugin-card-header", className)} {...rest} />;
export const CardTitle = ({ className, ...rest }: ComponentProps<"h3">) => <h3 className={cn("plugin-card-title", className)} {...rest} />;
export const CardContent = ({ className, ...rest }: Div) => <div className={cn("plugin-card-content", className)} {...rest} />;

interface Look {
  variant?: string;
  tone?: string;
}

const isDanger = (look?: string) => look === "destructive" || look === "danger";

export const Badge = ({ className, variant, tone, ...rest }: ComponentProps<"span"> & Look) => (
  <span className={cn("badge plugin-badge", isDanger(variant ?? tone) && "badge-alert", className)} {...rest} />
);

interface ButtonLook extends Look {
  size?: string;
  ghost?: boolean;
  outlined?: boolean;
  destructive?: boolean;
  prefix?: ReactNode;
  suffix?: ReactNode;
}

type ButtonProps = Omit<ComponentProps<"button">, "prefix"> & ButtonLook;

export function Button({ className, variant, tone, size: _, ghost, outlined, destructive, prefix, suffix, children, ...rest }: ButtonProps) {
  const isQuiet = ghost || variant === "ghost" || variant === "link";
  const look = destructive || isDanger(variant ?? tone) ? "danger" : isQuiet ? "quiet" : !outlined && (variant === "default" || variant === "primary") ? "primary" : "";
  return (
    <button type="button" className={cn(look, className)} {...rest}>
      {prefix}
      {children}
      {suffix}
    </button>
  );
}

type CheckboxProps = Omit<ComponentProps<"input">, "type"> & { onCheckedChange?(checked: boolean): void };

export const Checkbox = ({ onCheckedChange, onChange, ...rest }: CheckboxProps) => (
  <input
    type="checkbox"
    {...rest}
    onChange={(event) => {
      onChange?.(event);
      onCheckedChange?.(event.target.checked);
    }}
  />
);

export const Input = (properties: ComponentProps<"input">) => <input {...properties} />;
export const Label = (properties: ComponentProps<"label">) => <label {...properties} />;

type SelectProps = ComponentProps<"select"> & { onValueChange?(value: string): void };

export const Select = ({ onValueChange, onChange, ...rest }: SelectProps) => (
  <select
    {...rest}
    onChange={(event) => {
      onChange?.(event);
      onValueChange?.(event.target.value);
    }}
  />
);
export const SelectOption = (properties: ComponentProps<"option">) => <option {...properties} />;

export const Separator = ({ className, ...rest }: ComponentProps<"hr">) => <hr className={cn("plugin-separator", className)} {...rest} />;

type TabsProps = Omit<Div, "children"> & {
  defaultValue: string;
  children: ReactNode | ((active: string, setActive: (value: string) => void) => ReactNode);
};

export function Tabs({ className, defaultValue, children, ...rest }: TabsProps) {
  const [active, setActive] = useState(defaultValue);
  return (
    <div className={cn("plugin-tabs", className)} {...rest}>
      {typeof children === "function" ? children(active, setActive) : children}
    </div>
  );
}
export const TabsList = ({ className, ...rest }: Div) => <div className={cn("segments", className)} role="group" {...rest} />;

type TriggerProps = ComponentProps<"button"> & { active?: boolean };

export const TabsTrigger = ({ active = false, value: _, ...rest }: TriggerProps) => <button type="button" aria-pressed={active} {...rest} />;

interface DialogProps {
  open?: boolean;
  title?: string;
  onOpenChange?(open: boolean): void;
  onClose?(): void;
  children?: ReactNode;
}

export function Dialog({ open = true, title = "Dialog", onOpenChange, onClose, children }: DialogProps) {
  if (!open) return null;
  const close = () => {
    onOpenChange?.(false);
    onClose?.();
  };
  return (
    <Modal title={title} onClose={close}>
      {children}
    </Modal>
  );
}

interface ConfirmProps extends DialogProps {
  description?: ReactNode;
  message?: ReactNode;
  confirmLabel?: string;
  cancelLabel?: string;
  destructive?: boolean;
  onConfirm?(): void;
  onCancel?(): void;
}

export function ConfirmDialog({ title = "Are you sure?", description, message, confirmLabel = "OK", cancelLabel = "Cancel", destructive, onConfirm, onCancel, ...dialog }: ConfirmProps) {
  const close = () => {
    onCancel?.();
    dialog.onClose?.();
    dialog.onOpenChange?.(false);
  };
  return (
    <Dialog open={dialog.open} title={title} onClose={close}>
      <h2>{title}</h2>
      <p>{description ?? message}</p>
      {dialog.children}
      <div className="dialog-actions">
        <button onClick={close}>{cancelLabel}</button>
        <button className={destructive ? "danger filled" : "primary"} onClick={onConfirm}>
          {confirmLabel}
        </button>
      </div>
    </Dialog>
  );
}

interface ToastProps {
  toast?: { message?: string; type?: string } | null;
  message?: string;
  type?: string;
}

export function Toast({ toast, message, type }: ToastProps) {
  const text = toast?.message ?? message;
  if (!text) return null;
  return (
    <div role="status" className={cn("toast plugin-toast", (toast?.type ?? type) === "error" && "toast-error")}>
      <span>{text}</span>
    </div>
  );
}

/** A slot within a plugin's own component, which other plugins fill. */
export function PluginSlot({ name, fallback = null }: { name: string; fallback?: ReactNode }) {
  return useFilled(name).length ? <Slot name={name} /> : fallback;
}
