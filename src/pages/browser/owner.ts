import './copying.ts';
import { enterLocalTimes, showLocalTimes } from './times.ts';

showLocalTimes(document.body);
enterLocalTimes(document.body);
