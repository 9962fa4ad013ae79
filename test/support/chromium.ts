import { existsSync } from 'node:fs';

/** Where Debian's package has it. */
export const chromiumPath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

/** Without a browser its tests are left out, which the run says at its end. In CI they fail instead. */
export const noBrowser = !existsSync(chromiumPath) && !process.env.CI;
