let serial = 0;
export const newId = (kind) => `${kind}_${String(++serial).padStart(24, '0')}`;
