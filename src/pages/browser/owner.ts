import './copying.ts';
import { showLocalTimes } from './times.ts';

showLocalTimes(document.body);
