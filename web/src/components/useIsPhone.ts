import { useEffect, useState } from "react";

const phone = matchMedia("(max-width: 760px)");

export function useIsPhone(): boolean {
  const [isPhone, setPhone] = useState(phone.matches);
  useEffect(() => {
    const change = () => setPhone(phone.matches);
    phone.addEventListener("change", change);
    return () => phone.removeEventListener("change", change);
  }, []);
  return isPhone;
}
