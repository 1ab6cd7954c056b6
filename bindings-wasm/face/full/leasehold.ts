import { type Open, opened, type Opening } from "../leasehold.js";
import { Leasehold } from "../shared/full.js";

export const open: Open<Leasehold> = async (...given: Opening) => new Leasehold(opened(given));
