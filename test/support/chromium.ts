import { existsSync } from 'node:fs';

/** Debian's package `chromium-headless-shell` takes less than half of the processor time of its `chromium`. */
const debian = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/** Where the browser is: the variable `CHROMIUM_PATH`, or else what Debian's packages install. */
export const chromiumPath =
  process.env.CHROMIUM_PATH ?? debian.find((path) => existsSync(path)) ?? '/usr/bin/chromium';

/** Without a browser its tests are left out, which the run says at its end. In CI they fail instead. */
export const noBrowser = !existsSync(chromiumPath) && !process.env.CI;
